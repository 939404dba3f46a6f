"""What is wrong with a database or with samples on a server, and what to do, to follow its name."""

from collections.abc import Mapping

DATABASE: Mapping[str, str] = {
    "login": "refuses the login ({cause}); check the user's name, and the password in ~/.pgpass, PGPASSWORD "
    "or a service file",
    "certificate": "is not trusted or not encrypted as asked ({cause}); check sslmode and sslrootcert in "
    "the URL",
    "gone": "can't be reached ({cause}); check that its server runs and the URL is right, then {next}",
    "full": "has no connection left ({cause}); run fewer processes, or raise max_connections of its "
    "server, then {next}",
    "missing": "is not there ({cause}); check its name, or make it with `createdb`",
    "service": "can't be reached ({cause}); check the service's name in the URL",
    "url": "can't be used ({cause}); check the URL's parameters",
    "lost": "was lost in the middle ({cause}); check its server, then {next}",
    "busy": "is in use by another program ({cause}); wait until that has finished, then {next}",
    "no right": "refuses it ({cause}); take the role that made the campaign, or let its owner grant "
    "the right (to make campaigns: GRANT CREATE ON DATABASE; to read one: GRANT USAGE ON SCHEMA "
    "and GRANT SELECT ON ALL TABLES IN SCHEMA, its parts NAME/... included)",
    "no tables": "lacks tables of this campaign ({cause}); restore them from a copy",
    "no columns": "lacks columns of this campaign ({cause}); restore it from a copy",
    "no campaign": "lacks this campaign ({cause}); restore it from a copy, or check the URL",
    "read only": "can only be read ({cause}); name the primary server",
    "stopped": "stopped a statement ({cause}); raise its statement_timeout, then {next}",
    "damaged": "is damaged, or its disk fails ({cause}); look into its server's log",
    "no disk": "can't use its disk ({cause}); look into its server's log, then {next}",
}
"""By the problem; `cause` is what the driver says, `next` how to go on then."""
NEXT = "go on with `edgeflare resume`: what is stored stays"

SAMPLES: Mapping[str, str] = {
    "no credentials": "can't be reached: there are no credentials; set AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY, or a profile",
    "unknown key": "were refused: the server does not know this access key; check AWS_ACCESS_KEY_ID",
    "wrong key": "were refused: the secret key is wrong; check AWS_SECRET_ACCESS_KEY",
    "no right": "can't be used: these credentials have no right to read and write there; ask for them, or "
    "name another place",
    "clock": "were refused: this host's clock is wrong; set it",
    "no TLS": "can't be reached: there is no TLS connection, or the server's certificate was refused; "
    "check AWS_ENDPOINT_URL and AWS_CA_BUNDLE",
    "unreachable": "can't be reached: the server does not answer; check AWS_ENDPOINT_URL and the network, "
    "then start again, or go on with `edgeflare resume`",
    "slow": "can't be used: the server asks for fewer requests; go on later",
    "no bucket": "can't be used: there is no such bucket; make it, or name another place",
    "no name": "can't be used: a bucket's name has 3 to 63 lower-case letters, digits, dots and hyphens; "
    "check the place",
}
