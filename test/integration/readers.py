"""What pandas reads in a results folder, as JSON: run by the interpreter of the environment 'readers'."""
import json
import os
import sys

import pandas

folder = sys.argv[1]
found = {}
for name in ("stats", "failures", "exceptions", "stats_history"):
    table = pandas.read_csv(os.path.join(folder, name + ".csv"), dtype=str, keep_default_na=False)
    found[name] = [list(table.columns)] + table.values.tolist()
    if name == "stats":  # and as its own eyes see the columns
        plain = pandas.read_csv(os.path.join(folder, "stats.csv"))
        found["counts"] = [int(n) for n in plain["Request Count"]]
        found["kinds"] = {column: plain[column].dtype.kind for column in plain.columns}
rows = pandas.read_json(os.path.join(folder, "stats.jsonl"), lines=True)
found["metrics"] = list(rows["metric"])
found["measurements"] = pandas.json_normalize(rows["measurements"].iloc[0]).to_dict("records")[0]
found["time_kind"] = pandas.to_datetime(rows["timestamp"], utc=True).dtype.kind
json.dump(found, sys.stdout)
