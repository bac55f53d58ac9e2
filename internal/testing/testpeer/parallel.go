package testpeer

import (
	"flag"
	"strconv"
)

// Parallel raises the number of tests that run at once, unless -parallel is set, for packages whose tests mostly wait.
// Call it before flags are parsed.
func Parallel(tests int) {
	if err := flag.Set("test.parallel", strconv.Itoa(tests)); err != nil {
		panic(err) // package testing always has this flag
	}
}
