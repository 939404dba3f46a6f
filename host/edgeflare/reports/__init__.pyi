# The names that other parts use; read at run time, too.

from .campaign import (
    summary_document as summary_document,
)
from .corpus import (
    additions_document as additions_document,
)
from .corpus import (
    corpus_document as corpus_document,
)
from .corpus import (
    removed_document as removed_document,
)
from .document import (
    Block as Block,
)
from .document import (
    Column as Column,
)
from .document import (
    Table as Table,
)
from .document import (
    Text as Text,
)
from .document import (
    print_document as print_document,
)
from .document import (
    table_of as table_of,
)
from .ranking import (
    ranking_document as ranking_document,
)
from .replay import (
    replay_document as replay_document,
)
from .replay import (
    reproductions_document as reproductions_document,
)
