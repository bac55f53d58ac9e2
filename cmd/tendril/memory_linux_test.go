package main

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
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

// The test's own program loses the pages that it has read, and goes on.
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
	resident() // what it reads itself
	before := resident()
	releaseProgram()
	if after := resident(); after > before*3/4 {
		t.Errorf("%d kB of files are resident after the release, %d before", after, before)
	}
}
