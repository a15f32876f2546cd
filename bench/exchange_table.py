# SPDX-License-Identifier: Apache-2.0
"""Makes tables of measurements of bench/exchange."""
from exchange_grid import AUTOMATIC, REFERENCE, best, cells, ratio


def cell_text(line):
    """Returns milliseconds, and megabytes on the wire; over shared memory, those that gpups counted."""
    if line is None:
        return "-"
    sent = (line["wire_bytes"] if line["link"] != "shm" else line["sent_bytes"]) / 1e6
    return f"{line['ms']:.2f}" + (f" / {sent:.2f}" if sent >= .005 else "")


def columns_of(lines):
    names = list(dict.fromkeys(line["way"] for line in lines))
    fixed = [name for name in names if name != AUTOMATIC]
    return fixed + [AUTOMATIC] * (AUTOMATIC in names)


def row(ways, columns):
    fastest = best(ways)
    texts = [cell_text(ways.get(name)) for name in columns]
    if fastest:
        texts = [f"**{text}**" if name == fastest["way"] else text for name, text in zip(columns, texts)]
    against = f"{ways[REFERENCE]['ms'] / fastest['ms']:.1f} x" if REFERENCE in ways else "-"
    automatic = [f"{found:.2f}" if (found := ratio(ways)) else "-"] * (AUTOMATIC in columns)
    return [*texts, against, *automatic]


def markdown(lines):
    """Returns tables, one for each link: ms / MB on the wire over all ranks."""
    columns = columns_of(lines)
    text = []
    for link in dict.fromkeys(line["link"] for line in lines):
        head = ["P", "N", "density", *columns, f"best against {REFERENCE}", *["auto / best"] * (AUTOMATIC in columns)]
        text += [f"### {link}", "", "| " + " | ".join(head) + " |", "| " + " | ".join(["---:"] * len(head)) + " |"]
        for (_, ranks, elements, density), ways in cells([line for line in lines if line["link"] == link]).items():
            start = [str(ranks), f"{elements >> 20} M", f"{density * 100:g} %"]
            text.append("| " + " | ".join([*start, *row(ways, columns)]) + " |")
        text.append("")
    return "\n".join(text)
