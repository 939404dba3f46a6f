"""Reports of campaigns, replays, rankings and corpora: their wording and their formats."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
