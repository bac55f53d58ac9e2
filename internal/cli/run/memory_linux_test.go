package run

import (
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

func TestMappingsOfTheProgramThatWereNeverWrittenAreFound(t *testing.T) {
	t.Parallel()
	const smaps = `00400000-01813000 r-xp 00000000 fe:00 10625865                           /usr/bin/tendril
Size:              20556 kB
Rss:               16268 kB
Anonymous:             0 kB
01813000-02ca7000 r--p 01413000 fe:00 10625865                           /usr/bin/tendril
Anonymous:             0 kB
02ca7000-02cb0000 r--p 028a0000 fe:00 10625865                           /usr/bin/tendril
Anonymous:            36 kB
02cb0000-02dbe000 rw-p 028a7000 fe:00 10625865                           /usr/bin/tendril
Anonymous:             0 kB
4345c800000-4345d800000 rw-p 00000000 00:00 0 
Anonymous:             0 kB
7efefc4c0000-7efefc616000 r-xp 00026000 fe:00 326269                     /usr/lib/libc.so.6
Anonymous:             0 kB
`
	want := []mapping{{0x400000, 0x1813000}, {0x1813000, 0x2ca7000}}
	if got := programMappings(strings.NewReader(smaps)); !slices.Equal(got, want) {
		t.Errorf("the mappings are %x, want %x", got, want)
	}
}

func TestPagesOfTheProgramAreReleased(t *testing.T) {
	resident := func() int {
		text, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(regexp.MustCompile(`RssFile:\s+(\d+) kB`).FindStringSubmatch(string(text))[1])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	resident() // maps the pages that measuring itself needs
	before := resident()
	releaseProgram()
	if after := resident(); after > before*3/4 {
		t.Errorf("%d kB of files are resident after the release, %d before", after, before)
	}
}

func TestNearestMemoryLimitIsFound(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{}
	for name, limit := range map[string]string{
		"memory/memory.limit_in_bytes":       "9223372036854771712",
		"memory/pod/memory.limit_in_bytes":   "268435456",
		"memory/pod/a/memory.limit_in_bytes": "9223372036854771712",
		"memory/pod/b/memory.limit_in_bytes": "67108864\n",
		"pod.slice/memory.max":               "268435456\n",
		"pod.slice/a/memory.max":             "max\n",
		"pod.slice/b/memory.max":             "67108864\n",
	} {
		files[name] = &fstest.MapFile{Data: []byte(limit)}
	}
	for groups, want := range map[string]int64{
		"":                                      math.MaxInt64,
		"0::/":                                  math.MaxInt64,
		"0::/pod.slice/a\n":                     256 << 20,
		"0::/pod.slice/b\n":                     64 << 20,
		"0::/pod.slice/b/c/d\n":                 64 << 20,
		"4:memory:/pod/a\n1:cpu:/pod/b\n0::/\n": 256 << 20,
		"4:cpu,memory:/pod/b\n0::/\n":           64 << 20,
		"4:memory:/docker/0123/pod\n":           math.MaxInt64,
		"4:memory:/../../pod/b\n0::/pod.slice/a\n": 64 << 20,
	} {
		if got := leastLimit(files, groups); got != want {
			t.Errorf("%q: %d, want %d", groups, got, want)
		}
	}
}

func TestMemoryBudget(t *testing.T) {
	t.Parallel()
	const none = math.MaxInt64
	for name, c := range map[string]struct {
		goLimit, group int64
		hasApp         bool
		want           int64 // -1 means that tendril refuses to start
	}{
		"no limit":                       {none, none, true, 0},
		"queues only":                    {none, 1000 << 20, false, 900 << 20},
		"with an app":                    {none, 1000 << 20, true, 250 << 20},
		"with an app, little memory":     {none, 64 << 20, true, leastMemory / 10 * 9},
		"GOMEMLIMIT decides":             {100 << 20, 1000 << 20, true, 100 << 20},
		"GOMEMLIMIT below what it needs": {1 << 20, none, true, leastMemory},
		"the least":                      {none, leastMemory, false, leastMemory / 10 * 9},
		"too little":                     {none, leastMemory - 1, false, -1},
		"too little, with GOMEMLIMIT":    {100 << 20, leastMemory - 1, false, -1},
	} {
		got, err := memoryBudget(c.goLimit, c.group, c.hasApp)
		if err != nil {
			got = -1
		}
		if got != c.want {
			t.Errorf("%s: %d, %v, want %d", name, got, err, c.want)
		}
	}
}
