"""Manifests that cannot be read: standard error names the file and the document."""

from typing import Final

from harness.error_paths.row import Row

# fmt: off
ROWS: Final = [
    Row("lint -f FOLDER/none.yaml --domain a.example.com", "FOLDER/none.yaml: No such file or directory", 2),
    Row("lint -f FOLDER/empty --domain a.example.com", "FOLDER/empty holds no manifest: their names end in .yaml, .yml, .json", 2),
    Row("lint -f FOLDER/not.yaml --domain a.example.com",
        "FOLDER/not.yaml document 1 is not YAML: line 1: expected the node content, but found '<stream end>'", 2),
    Row("lint -f FOLDER/second.yaml --domain a.example.com", "FOLDER/second.yaml document 2 is no Kubernetes object: it has no kind", 2),
    Row("lint -f FOLDER/tab.yaml --domain a.example.com",
        "FOLDER/tab.yaml document 1 is not YAML: line 2: found character '\\t' that cannot start any token", 2),
    Row("lint -f FOLDER/kindless.yaml --domain a.example.com", "FOLDER/kindless.yaml document 1 is no Kubernetes object: it has no kind", 2),
    Row("lint -f FOLDER/bare.yaml --domain a.example.com", "FOLDER/bare.yaml document 1 is no Kubernetes object: it has no metadata", 2),
    Row("lint -f FOLDER/self.yaml --domain a.example.com", "FOLDER/self.yaml document 1 is nested too deeply, or holds itself", 2),
    Row("lint -f FOLDER/bomb.yaml --domain a.example.com", "FOLDER/bomb.yaml document 1 is not YAML: its aliases make it too large", 2),
    Row("lint -f FOLDER/many.yaml --domain a.example.com",
        "FOLDER/many.yaml document 2 holds more than 300,000 values: it is no manifest", 2),
    Row("lint -f FOLDER/deep.yaml --domain a.example.com", "FOLDER/deep.yaml document 1 is nested too deeply, or holds itself", 2),
    Row("lint -f FOLDER/tag.yaml --domain a.example.com",
        "FOLDER/tag.yaml document 1 is not YAML: line 1: could not determine a constructor for the tag "
        "'tag:yaml.org,2002:python/object:os.system'", 2),
    Row("lint -f FOLDER/list.yaml --domain a.example.com", "FOLDER/list.yaml document 1 item 1 is no Kubernetes object: it has no kind", 2),
    Row("lint -f FOLDER/binary.yaml --domain a.example.com", "FOLDER/binary.yaml is not UTF-8: byte 1", 2),
    Row("lint -f 100000_CHARACTERS --domain a.example.com", "X{160}...X{39}: File name too long", 2),
    Row("lint -f FOLDER/ESCAPE --domain a.example.com", "FOLDER/\\x1b[31m: No such file or directory", 2),
    Row("lint -f FOLDER/kubeconfig.yaml --domain a.example.com", "FOLDER/kubeconfig.yaml document 1 is no Kubernetes object: it has no kind", 2),
    Row("lint -f FOLDER/empty --domain 'not a domain'", "FOLDER/empty holds no manifest: their names end in .yaml, .yml, .json", 2),
    Row("lint -f FOLDER/not.yaml -f FOLDER/none.yaml --domain a.b",
        "FOLDER/not.yaml document 1 is not YAML: line 1: expected the node content, but found '<stream end>'", 2),
]
# fmt: on
