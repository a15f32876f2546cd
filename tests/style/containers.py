#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the files of containers/ without running a container: they are valid and agree with each other.

usage: containers.py FOLDER    of the repository
"""
import pathlib
import re
import subprocess
import sys

SKIPPED = 77


def problems_of_compose(compose, gpus):
    services = compose["services"]
    ranks = [int(service["environment"]["RANK"]) for service in services.values()]
    if ranks != list(range(len(services))):
        yield f"compose.yaml: ranks are {ranks} (each service needs another one, from 0 on): number them"
    for name, service in services.items():
        variables = service["environment"]
        if int(variables["WORLD_SIZE"]) != len(services):
            yield f"compose.yaml: {name} has WORLD_SIZE={variables['WORLD_SIZE']} (there are {len(services)} ranks)"
        if variables["MASTER_ADDR"] != next(iter(services)):
            yield f"compose.yaml: {name} has MASTER_ADDR={variables['MASTER_ADDR']} (rank 0 is another service)"
        if variables["GPUPS_TOKEN_FILE"] not in [f"/run/secrets/{secret}" for secret in service["secrets"]]:
            yield f"compose.yaml: {name} has no secret {variables['GPUPS_TOKEN_FILE']}"
    if list(gpus["services"]) != list(services):
        yield "compose.gpus.yaml: its services are not those of compose.yaml"


def problems_of_mpijob(job, dockerfile):
    spec = job["spec"]
    launcher, worker = (spec["mpiReplicaSpecs"][name] for name in ("Launcher", "Worker"))
    program = launcher["template"]["spec"]["containers"][0]
    ranks = int(program["args"][program["args"].index("-n") + 1])
    if ranks != spec["slotsPerWorker"] * worker["replicas"]:
        yield f"mpijob.yaml: {ranks} ranks, but {worker['replicas']} workers of {spec['slotsPerWorker']} slots"
    container = worker["template"]["spec"]["containers"][0]
    if container["resources"]["limits"]["nvidia.com/gpu"] != spec["slotsPerWorker"]:
        yield "mpijob.yaml: a worker needs one GPU for each of its slots"
    volumes = {volume["name"] for volume in worker["template"]["spec"]["volumes"]}
    if volumes != {mount["name"] for mount in container["volumeMounts"]}:
        yield "mpijob.yaml: volumes and volumeMounts differ"
    user = launcher["template"]["spec"]["securityContext"]["runAsUser"]
    if f"--uid {user} " not in dockerfile:
        yield f"mpijob.yaml: pods run as user {user}, which the Dockerfile does not create"


def problems_of_dockerfile(text, root):
    stages = set(re.findall(r"^FROM \S+ AS (\S+)", text, re.MULTILINE))
    for stage in re.findall(r"--from=(\S+)", text):
        if stage not in stages:
            yield f"Dockerfile: there is no stage {stage}"
    for source in re.findall(r"^COPY (?!--from)(\S+)", text, re.MULTILINE):
        if not (root / source).exists():
            yield f"Dockerfile: {source} does not exist"
    if not re.search(r"^USER (?!root)", text.rsplit("\nFROM ", 1)[1], re.MULTILINE):
        yield "Dockerfile: the image runs as root"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        import yaml
    except ImportError:
        print("python3-yaml is not installed: tools/install_dependencies --tests installs it")
        sys.exit(SKIPPED)
    root = pathlib.Path(sys.argv[1])
    folder = root / "containers"
    parsed = {path.name: yaml.safe_load(path.read_text()) for path in folder.glob("*.yaml")}
    dockerfile = (folder / "Dockerfile").read_text()
    problems = [*problems_of_compose(parsed["compose.yaml"], parsed["compose.gpus.yaml"]),
                *problems_of_mpijob(parsed["mpijob.yaml"], dockerfile), *problems_of_dockerfile(dockerfile, root)]
    for script in folder.glob("*.sbatch"):
        done = subprocess.run(["bash", "-n", str(script)], stderr=subprocess.PIPE, text=True)
        problems += done.stderr.splitlines()
    print("\n".join([*problems, f"{len(parsed)} YAML files, {len(problems)} problems"]))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
