"""Which of the scenarios named on standard input the schema refuses: one line each, "NAME" or "NAME why". Run by the
system's Python, which has jsonschema and PyYAML from Debian."""
import json
import os
import sys

import jsonschema
import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def read(path):
    with open(path, encoding="utf-8-sig") as f:
        text = f.read()
    return yaml.safe_load(text) if path.endswith((".yaml", ".yml")) else json.loads(text)


with open(os.path.join(ROOT, "docs/scenario.schema.json")) as schema_file:
    schema = json.load(schema_file)
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
for line in sys.stdin:
    path = line.strip()
    try:
        fault = next(validator.iter_errors(read(path)), None)
        why = fault and fault.message
    except (ValueError, yaml.YAMLError) as e:  # no JSON, no YAML, no UTF-8
        why = str(e)
    print(path, (why or "").replace("\n", " ")[:200], flush=True)
