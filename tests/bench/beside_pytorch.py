"""Whole training steps, ours and PyTorch's at its best, in turn on one computer: tokens per second and peak memory.

PyTorch lives in a folder of its own (python3 -m venv DIR && DIR/bin/pip install torch numpy); libtcmalloc-minimal4 and
a C compiler make it faster. Its first step of each row compiles, which takes minutes; --warm does only that, so that
the rows can be measured afterwards in short pieces (--rows), on a computer that does nothing else meanwhile.

  tests/bench/beside_pytorch.py --peer-python DIR/bin/python --rows tiny --out rows.json
  tests/bench/beside_pytorch.py --table rows.json
"""
import argparse
import datetime
import glob
import json
import os
import platform
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# name: preset, tokens of a row, rows, optimiser of the matrices
ROWS = {f"{name}-{opt}": (preset, length, batch, opt)
        for name, preset, length, batch in [("stack", "stack100m", 2048, 1), ("stack512", "stack100m", 512, 4),
                                            ("rungA", "rungA", 512, 8), ("tiny", "tiny", 256, 16)]
        for opt in ("adamw", "muon")}
# How the cost grows with the length of a row, at about 2048 tokens a step, and with the model.
ROWS.update({f"growth{length}": ("stack100m", length, max(1, 2048 // length), "adamw")
             for length in (256, 512, 1024, 2048, 4096, 8192)})
NAMES = {"stack100m": "Stack-100M", "rungA": "rung A", "tiny": "tiny"}


def ours(a, preset, length, batch, opt):
    answer = subprocess.run([a.stacklab, "bench", "train", "--preset", preset, "--T", str(length), "--batch", str(batch),
                             "--opt", opt, "--steps", str(a.steps), "--json", "--quiet"],
                            check=True, capture_output=True, text=True).stdout
    row = json.loads(answer)["rows"][0]
    return {"tokens_per_second": row["tokens_per_second"], "best": length * batch / row["fastest_seconds"],
            "peak_mib": row["peak_bytes"] / 2**20, "gemm": row["gemm_flops_per_second"],
            "useful": row["useful_flops"] / row["step_seconds"]}


def peer(a, library, preset, length, batch, opt, steps):
    preload = [library] + glob.glob("/usr/lib/*/libtcmalloc_minimal.so.4")[:1]
    answer = subprocess.run([a.peer_python, os.path.join(HERE, "pytorch", "train_bench.py"), "--compile", "--preset",
                             preset, "--T", str(length), "--batch", str(batch), "--opt",
                             "muon-batched" if opt == "muon" else opt, "--steps", str(steps)],
                            check=True, stdout=subprocess.PIPE, text=True,
                            stderr=None if a.verbose else subprocess.DEVNULL,
                            env={**os.environ, "LD_PRELOAD": ":".join(preload)}).stdout
    row = json.loads(answer)
    return {"tokens_per_second": row["tokens_per_s"], "best": length * batch / row["step_min_max_s"][0],
            "peak_mib": row["peak_rss_mib"]}


def cpu_model():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def table(path):
    done = json.load(open(path))
    print(f"{done['cpu']}, {done['threads']} threads, {done['date']}; `{done['command']}`\n")
    print("| work | tokens/s | PyTorch | ratio | of its products | peak MiB | PyTorch | ratio |\n" + "|---" * 8 + "|")
    for name, rounds in done["rows"].items():
        preset, length, batch, opt = ROWS[name]
        best = lambda side: max(rounds[side], key=lambda r: r["tokens_per_second"])
        x = best("ours")
        cells = [f"{NAMES[preset]}, {batch} x {length}, {'Muon' if opt == 'muon' else 'AdamW'}",
                 f"{x['tokens_per_second']:.0f}"]
        if rounds.get("peer"):
            y = best("peer")
            cells += [f"{y['tokens_per_second']:.0f}", f"{x['tokens_per_second'] / y['tokens_per_second']:.2f}",
                      f"{x['useful'] / x['gemm']:.2f}", f"{x['peak_mib']:.0f}", f"{y['peak_mib']:.0f}",
                      f"{x['peak_mib'] / y['peak_mib']:.2f}"]
        else:
            cells += ["–", "–", f"{x['useful'] / x['gemm']:.2f}", f"{x['peak_mib']:.0f}", "–", "–"]
        print("| " + " | ".join(cells) + " |")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--stacklab", default=os.path.join(ROOT, "build/release/bin/stacklab"))
    ap.add_argument("--peer-python", help="Python that has torch; without it, ours alone")
    ap.add_argument("--rows", default="stack,stack512,rungA,tiny", help="beginnings of names: " + ", ".join(ROWS))
    ap.add_argument("--rounds", type=int, default=2, help="of both sides in turn; the better median counts")
    ap.add_argument("--steps", type=int, default=3)
    ap.add_argument("--out", help="JSON that rows are added to")
    ap.add_argument("--warm", action="store_true", help="only let PyTorch compile")
    ap.add_argument("--table", metavar="JSON", help="print what was measured as Markdown")
    ap.add_argument("--verbose", action="store_true")
    a = ap.parse_args()
    if a.table:
        return table(a.table)
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "libmkl_amd.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", os.path.join(HERE, "pytorch", "mkl_amd.c"), "-o", library],
                       check=True)
        done = {"cpu": cpu_model(), "threads": os.cpu_count(), "date": datetime.date.today().isoformat(),
                "command": "tests/bench/beside_pytorch.py", "rows": {}}
        if a.out and os.path.exists(a.out):
            done = json.load(open(a.out))
        for name, row in ROWS.items():
            if not any(name.startswith(wanted) for wanted in a.rows.split(",")):
                continue
            if a.warm:
                peer(a, library, *row, 1)
                continue
            rounds = done["rows"].setdefault(name, {"ours": [], "peer": []})
            for _ in range(a.rounds):
                rounds["ours"].append(ours(a, *row))
                if a.peer_python:
                    rounds["peer"].append(peer(a, library, *row, a.steps))
                print(name, json.dumps({side: values[-1:] for side, values in rounds.items()}), file=sys.stderr,
                      flush=True)
                if a.out:
                    with open(a.out + ".part", "w") as f:
                        json.dump(done, f, indent=1)
                    os.replace(a.out + ".part", a.out)
    if a.out:
        table(a.out)


if __name__ == "__main__":
    main()
