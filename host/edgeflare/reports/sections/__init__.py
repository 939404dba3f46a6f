"""The sections of a campaign's report, which every format takes."""
