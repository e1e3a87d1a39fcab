# SPDX-License-Identifier: Apache-2.0
"""HotSpot's frames, compared with the stacks that Java itself reports (tests/e2e/java/scenes)."""
import collections
import glob
import os
import re
import shutil
import subprocess

import pytest
from conftest import BUILD, of_which_check_has, profpipe
from java_stacks import (FOLDER, JAVA, JAVAS, SCENES, Frame, Score, built, ran, sampled,
                         version)

# Before Java 10, hidden frames are in no report without this.
SHOW = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+ShowHiddenFrames"]


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    return built(tmp_path_factory.mktemp("classes"))


def check(label, java, classes, tmp_path, *flags, least=0.99, phases=0.9, **kw):
    """Runs all scenes, and prints the score."""
    expected, stacks, summary = ran(java, classes, tmp_path, *flags, **kw)
    score = Score(expected, stacks)
    score.print_table(label)
    print(f"  {summary['complete'] / summary['samples']:.2%} of {summary['samples']} samples "
          f"complete", *[f"  {k}: {v}" for k, v in summary["truncated"].items() if v], sep="\n")
    assert len(expected) > 110
    assert len(score.all_of) >= phases * len(expected), sorted(set(expected) - set(score.all_of))
    assert score.share() >= least
    return score


@pytest.mark.parametrize("java", of_which_check_has(JAVAS, [JAVA]))
def test_stacks_equal_javas_report(java, classes, tmp_path):
    assert_native_frames(check(f"Java {version(java)}", java, classes, tmp_path))


# Flags that change frames, code, or the layout of the data that names are read from.
FLAGS = {
    "interpreter": ["-Xint"],
    "C1": ["-XX:TieredStopAtLevel=1"],
    "C1 with profiles": ["-XX:TieredStopAtLevel=3"],
    "C2": ["-XX:-TieredCompilation"],
    "everything compiled": ["-Xcomp"],
    "one code heap": ["-XX:-SegmentedCodeCache"],
    "serial": ["-XX:+UseSerialGC"],
    "parallel": ["-XX:+UseParallelGC"],
    "Z": ["-XX:+UseZGC"],
    "no compressed pointers": ["-XX:-UseCompressedOops"],
    "no archive": ["-Xshare:off"],
    "frame pointers": ["-XX:+PreserveFramePointer"],
    "large stacks": ["-XX:-Inline", "-XX:-BackgroundCompilation"],
}


@pytest.mark.check_all
@pytest.mark.parametrize("how", FLAGS)
def test_stacks_with_other_flags_equal_javas_report(how, classes, tmp_path):
    check(f"Java {version(JAVA)}, {how}", JAVA, classes, tmp_path, *FLAGS[how])


@pytest.mark.check_all
def test_inlined_calls_are_frames_like_others(classes, tmp_path):
    names = [f"{n}{m}" for n in ("inlined", "alone") for m in ("Outer", "Middle", "Inner")]
    flags = [f"-XX:CompileCommand={'inline' if n.startswith('inlined') else 'dontinline'},"
             f"scenes.Code::{n}" for n in names]
    expected, stacks, _ = ran(JAVA, classes, tmp_path, "-XX:CompileCommand=quiet", "-Xbatch",
                              *flags, seconds="0.4", scenes=("inlined", "alone"))
    score = Score(expected, stacks)
    score.print_table("inlined, and not")
    assert len(score.all_of) == 4 and min(score.all_of.values()) > 50
    assert score.share() >= 0.99


@pytest.mark.parametrize("flag, mark", [("-Xint", "i"), ("-XX:TieredStopAtLevel=1", "c1"),
                                        ("-XX:-TieredCompilation", "c2")])
def test_kinds_of_code_are_marked(flag, mark, classes, tmp_path):
    out = tmp_path / "out.folded"
    p = profpipe("record", "-q", "-F", 499, "--code", "-o", out, "--", JAVA, flag, "-cp", classes,
                 "scenes.Main", "0.1", tmp_path / "stacks", "recursion")
    assert p.returncode == 0, p.stderr
    hot = [line for line in out.read_text().splitlines() if "Mark$Hot.at(" in line]
    marks = re.findall(r"Calls\.recurse\(int\)_\[(\w+)\]", "\n".join(hot))
    assert len(marks) > 20 and marks.count(mark) >= 0.9 * len(marks), marks
    natives = re.findall(r"\.doPrivileged\([^;]*_\[(\w+)\]", out.read_text())
    assert set(natives) <= {"i", "n", mark}, natives


# By method of Names, the title of the thread that runs it. Virtual threads have their carriers'
# titles while their own are not known, but never another thread's.
TITLES = {"plain": "a plain thread of Java", "wide": "\u03a9 wide \U0001f980",
          "former": "a former name of the thread", "latter": "a latter name of the thread",
          "first": "the first virtual thread", "second": "the second virtual thread",
          "nameless": None}


@pytest.mark.parametrize("java", JAVAS)
def test_threads_have_the_names_that_java_gave_them(java, classes, tmp_path):
    out = tmp_path / "out.txt"
    p = profpipe("record", "-q", "-F", 997, "-o", out, "--", java, "-cp", classes,
                 "-Djdk.virtualThreadScheduler.parallelism=1", "Names", "3")
    assert p.returncode == 0, p.stderr
    seen = collections.defaultdict(collections.Counter)
    for head, stack in sampled(out):
        methods = [f.method[len("Names."):] for f in stack if isinstance(f, Frame)]
        method = next((m for m in methods[::-1] if m in TITLES), None)
        if method:
            name = re.match(r"(.*?) +\d+/\d+ \[", head)[1]
            seen[method][name.replace("_", " ")] += 1
    print(f"Java {version(java)}:", *[f"{m}: {dict(c)}" for m, c in seen.items()], sep="\n  ")
    assert set(seen) >= {"plain", "wide", "former", "latter"}
    if int(version(java).split(".")[0]) >= 21:
        assert set(seen) == set(TITLES)
    for method, names in seen.items():
        title = TITLES[method]
        # The kernel's names have 15 bytes. Carriers have none of the names above.
        others = [n for n in names if n != title and n in TITLES.values()]
        assert method in ("former", "latter") or not others, names
        if title:
            assert names[title] >= 0.8 * sum(names.values()), names


def test_thread_names_are_not_read_without_permission(classes, tmp_path):
    out = tmp_path / "out.txt"
    p = profpipe("record", "-q", "-F", 199, "--read-memory", "none", "-o", out, "--", JAVA, "-cp",
                 classes, "Names", "0.5")
    assert p.returncode == 0, p.stderr
    text = out.read_text()
    assert "a plain thread" in text and not any(t in text for t in TITLES.values() if t)


# The native frames between Java's own in a scene, by name, root first.
BETWEEN = {
    "jni": r"(scenes\.Native\.up;scenes\.Native\.down;Java_scenes_Native_down;"
           r"jni_CallStaticIntMethod;.*?){5}scenes\.Native\.up;scenes\.Spots\.jni;",
    "jni_callback": r"scenes\.Native\.sortBy;Java_scenes_Native_sortBy;[^;]*sort\w*;(.*;)?by_java;"
                    r"jni_CallIntMethod;.*?scenes\.Native\.compare;scenes\.Spots\.jni_callback;",
    "after_collection": r"JavaMain;.*scenes\.Main\.main;",
    "executor": r"start_thread;.*thread_native_entry[^;]*;.*java\.lang\.Thread\.run;",
}


def assert_native_frames(score):
    """Native frames are in the right place."""
    for scene, shape in BETWEEN.items():
        texts = [";".join(f.method if isinstance(f, Frame) else f for f in stack) + ";"
                 for (name, _), stack in score.spots if name == scene]
        texts = [re.sub(r"\([^;]*\)", "", text) for text in texts]
        whole = sum(bool(re.search(shape, text)) for text in texts)
        print(f"  native frames of {scene}: {whole} of {len(texts)}")
        # Before the library's first samples, its rows were not requested.
        assert whole >= 0.7 * len(texts) > 0, next(t for t in texts if not re.search(shape, t))


# Of all packages that a suite's Javas depend on, those that the scenes need.
ONLY = r"openjdk-[0-9]+-j(re|dk)-headless|libc6|zlib1g|libstdc\+\+6|libgcc-s1|dash|libcrypt1"
SUITES = {
    "bullseye": (r"openjdk-(11|17)-jre-headless", ["11", "17"]),
    "sid": (r"openjdk-(8|11|17|21)-jre-headless|openjdk-2[5-9]-j[rd][ek]-headless", ["8", "25"]),
}


@pytest.mark.check_all
@pytest.mark.parametrize("suite", SUITES)
def test_stacks_of_other_suites_equal_javas_report(suite, tmp_path):
    packages, has = SUITES[suite]
    root = tmp_path / "root"
    p = subprocess.run([os.path.join(os.path.dirname(FOLDER), "python", "suite.sh"), suite, root,
                        packages, ONLY], capture_output=True, text=True)
    assert p.returncode == 0, p.stderr
    enter = ('mount --bind "$0" "$0" && cd "$0" && mkdir -p proc dev tmp && '
             'mount -t proc proc proc && mount --bind /dev dev && pivot_root . old && exec "$@"')
    prefix = ["unshare", "-m", "sh", "-c", enter, root]
    try:
        (root / "classes").mkdir()
        built(root / "classes", for_all=True)
        found = {}
        for java in glob.glob(f"{root}/usr/lib/jvm/java-*-openjdk-amd64/**/bin/java",
                              recursive=True):
            # The folder java-1.11.0-openjdk-amd64 is a link to java-11-openjdk-amd64.
            major = re.search(r"java-(\d+)-openjdk", java)
            if major and not os.path.islink(java):
                found[major[1]] = java[len(str(root)):]
        assert set(has) <= set(found), found
        for major, java in sorted(found.items(), key=lambda item: int(item[0])):
            javac = root / java[1:-len("java")] / "javac"
            if int(major) >= 22 and javac.exists():
                shutil.copy(f"{SCENES}/Upcall22.java", root)
                subprocess.run([*prefix, java + "c", "-cp", "/classes", "-d", "/classes",
                                "/Upcall22.java"], check=True, capture_output=True)
            label = f"Java {version(java, *prefix)} of {suite}"
            check(label, java, "/classes", tmp_path, *(SHOW if int(major) < 10 else []),
                  prefix=prefix, root=root)
    finally:
        shutil.rmtree(root)


ZERO = """
const char name[] = "OpenJDK 64-Bit Zero VM (17.0.1) for linux-amd64";
void *gHotSpotVMStructs;
int JNI_CreateJavaVM(void)
{
	return name[0];
}
"""


def test_zero_is_named_as_unknown(tmp_path):
    """It exports the same descriptions, but has no code cache."""
    source, library = tmp_path / "zero.c", tmp_path / "libjvm.so"
    source.write_text(ZERO)
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    p = subprocess.run([f"{BUILD}/prof-symd", "--describe", library], capture_output=True,
                       text=True, check=True)
    assert p.stdout == "HotSpot Zero: not known\n", p.stdout
