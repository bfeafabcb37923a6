"""Tables that are missing, forbidden or cannot be reached, and an environment that cannot be right."""

from typing import Final

from harness.error_paths.row import Row

COMMANDS: Final = [
    "session --max-runtime 1",
    "resync",
    "recover",
    "status",
    "records",
    "upstreams",
    "errors",
    "audit",
    "explain prod/shop/web",
    "wait prod/shop/web",
    "lint -f FOLDER/service.yaml --cluster prod",
    "plan",
    "cluster list",
    "cluster export prod",
    "cluster set prod --ttl 60",
    "cluster show prod",
    "cluster check prod",
    "cluster remove prod",
    "cluster disable prod",
    "upstream list",
    "upstream show web",
]
"""Commands that read tables."""
_LOOKED: Final = "looked for deployment test (tables TABLES-*) in eu-west-1 at REFUSING_URL"
_MISSING: Final = (
    f"table TABLES-control does not exist: run `kubesync setup`, or check the prefix and the region; {_LOOKED}/missing"
)
_DENIED: Final = (
    "access to table TABLES-control is denied: User: arn:aws:iam::1:user/ann is not authorized to perform: dynamodb:Query; "
    f"{_LOOKED}/denied"
)
_ENVIRONMENTS: Final = {
    "AWS_ACCESS_KEY_ID= AWS_SECRET_ACCESS_KEY=": "no AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "AWS_REGION=": "no AWS region: give --region, or set AWS_REGION or a region in the AWS profile. Without AWS, try `kubesync local up`",
    "AWS_PROFILE=nobody": "AWS SDK: The config profile (nobody) could not be found: check AWS_PROFILE and the SDK's configuration files",
    "KUBESYNC_PAGE_LIMIT=0": "KUBESYNC_PAGE_LIMIT='0' is not valid: give at least 1",
    "KUBESYNC_WINDOW_SECONDS=soon": "KUBESYNC_WINDOW_SECONDS='soon' is not valid: give a number",
    "AWS_ENDPOINT_URL_DYNAMODB=127.0.0.1:1": "AWS_ENDPOINT_URL_DYNAMODB='127.0.0.1:1' is not a URL such as http://127.0.0.1:8000",
    "AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:99999": "AWS_ENDPOINT_URL_DYNAMODB='http://127.0.0.1:99999' is not a URL such as http://127.0.0.1:8000",
    "AWS_ENDPOINT_URL_ROUTE_53=http://": "AWS_ENDPOINT_URL_ROUTE_53='http://' is not a URL such as http://127.0.0.1:8000",
    "KUBESYNC_TABLE_PREFIX=a/b": "KUBESYNC_TABLE_PREFIX='a/b' is not valid: at most 244 letters, digits, dots, hyphens and underscores",
    "KUBESYNC_DEPLOYMENT=My_Own": "KUBESYNC_DEPLOYMENT='My_Own' is not valid: 1 to 24 lower-case letters, digits and hyphens,"
    " with no hyphen at either end",
    "KUBESYNC_SHARD=_": "KUBESYNC_SHARD='_' is not valid: 1 to 8 lower-case letters and digits",
    "KUBESYNC_LOG_LEVEL=loud": "KUBESYNC_LOG_LEVEL='LOUD' is not one of DEBUG, INFO, WARNING, ERROR, CRITICAL",
}
"""What is wrong with an environment, whichever command meets it first."""
# fmt: off
ROWS: Final = [
    *(Row(command, _MISSING, 1, "missing") for command in COMMANDS),
    *(Row(command, _DENIED, 1, "denied") for command in ["setup", *COMMANDS]),
    Row("status",
        "AWS refuses the credentials: renew them, or set AWS_PROFILE; looked for deployment test (tables TABLES-*) in eu-west-1 "
        "at REFUSING_URL/expired", 1, "expired"),
    Row("session --max-runtime 1",
        "AWS refuses the credentials: renew them, or set AWS_PROFILE; looked for deployment test (tables TABLES-*) in eu-west-1 "
        "at REFUSING_URL/expired", 1, "expired"),
    Row("cluster list",
        "AWS refuses the credentials: renew them, or set AWS_PROFILE; looked for deployment test (tables TABLES-*) in eu-west-1 "
        "at REFUSING_URL/expired", 1, "expired"),
    Row("status",
        "AWS refuses the credentials: renew them, or set AWS_PROFILE; check this machine's clock; looked for deployment test "
        "(tables TABLES-*) in eu-west-1 at REFUSING_URL/unsigned", 1, "unsigned"),
    Row("status",
        "DynamoDB cannot be reached: check the network, the region and AWS_ENDPOINT_URL_DYNAMODB; looked for deployment test "
        "(tables TABLES-*) in eu-west-1 at http://127.0.0.1:1; is `kubesync local up` running?", 1, "nowhere"),
    Row("records",
        "DynamoDB cannot be reached: check the network, the region and AWS_ENDPOINT_URL_DYNAMODB; looked for deployment test "
        "(tables TABLES-*) in eu-west-1 at http://127.0.0.1:1; is `kubesync local up` running?", 1, "nowhere"),
    Row("cluster list",
        "DynamoDB cannot be reached: check the network, the region and AWS_ENDPOINT_URL_DYNAMODB; looked for deployment test "
        "(tables TABLES-*) in eu-west-1 at http://127.0.0.1:1; is `kubesync local up` running?", 1, "nowhere"),
    Row("session --max-runtime 1",
        "DynamoDB cannot be reached: check the network, the region and AWS_ENDPOINT_URL_DYNAMODB; looked for deployment test "
        "(tables TABLES-*) in eu-west-1 at http://127.0.0.1:1; is `kubesync local up` running?", 1, "nowhere"),
    *(Row(command, said, 2, place) for command in ("status", "session", "setup") for place, said in _ENVIRONMENTS.items()),
    Row("status",
        "it must be KUBESYNC_LEASE_RENEW_SECONDS < KUBESYNC_LEASE_WRITE_SECONDS <= KUBESYNC_LEASE_SECONDS", 2, "KUBESYNC_LEASE_SECONDS=1"),
    Row("status",
        "these tables belong to deployment 'test', not to 'other': check KUBESYNC_DEPLOYMENT and "
        "KUBESYNC_TABLE_PREFIX", 2, "KUBESYNC_DEPLOYMENT=other"),
    Row("ADD_X",
        'Route 53 could not be reached, nothing was sent: Could not connect to the endpoint URL: '
        '"http://127.0.0.1:1/2013-04-01/hostedzone/ZONE_ID"; check the network, the region and AWS_ENDPOINT_URL_*',
        1, "AWS_ENDPOINT_URL_ROUTE_53=http://127.0.0.1:1"),
    Row("cluster add x --eks e --domain x.example.com --zone ZONE_ID",
        'EKS cannot describe cluster e: Could not connect to the endpoint URL: "http://127.0.0.1:1/clusters/e"; check the '
        "network, the region and AWS_ENDPOINT_URL_*", 1, "AWS_ENDPOINT_URL_EKS=http://127.0.0.1:1"),
    Row("doctor", "no schedule starts sessions here: the tables are on a stand-in", 2),
    Row("pause", "no schedule starts sessions here: the tables are on a stand-in", 2),
    Row("resume",
        'schedule kubesync-test-watch cannot be read: Could not connect to the endpoint URL: '
        '"http://127.0.0.1:1/schedules/kubesync-test-watch"; check the network, the region and AWS_ENDPOINT_URL_*',
        1, "AWS_ENDPOINT_URL_SCHEDULER=http://127.0.0.1:1"),
]
# fmt: on
