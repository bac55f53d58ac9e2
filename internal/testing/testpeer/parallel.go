package testpeer

import (
	"flag"
	"strconv"
)

// Parallel raises the number of tests that run at once, unless -parallel is set. Call it in TestMain, if the tests
// spend most of their time waiting for timers or for other processes.
func Parallel(tests int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(tests)); err != nil {
		panic(err) // package testing always has this flag
	}
}
