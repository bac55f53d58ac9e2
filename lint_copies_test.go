package tendril_test

import (
	"cmp"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxCopied is the number of consecutive lines that two packages may share.
const maxCopied = 12

// knownCopies are pairs of files that still share such a run.
var knownCopies = []string{}

// block is a run of lines in a file.
type block struct {
	path string
	line int
}

func TestPackagesDoNotCopyEachOther(t *testing.T) {
	seen := map[uint64][]block{}
	for _, s := range sources(t) {
		if s.test || !s.inHouse() {
			continue
		}
		data, err := os.ReadFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		code, numbers := codeLines(string(data))
		for i := 0; i+maxCopied < len(code); i++ {
			h := fnv.New64a()
			for _, l := range code[i : i+maxCopied+1] {
				h.Write([]byte(l))
				h.Write([]byte{'\n'})
			}
			seen[h.Sum64()] = append(seen[h.Sum64()], block{s.path, numbers[i]})
		}
	}
	told := map[string]bool{}
	for _, places := range seen {
		slices.SortFunc(places, func(a, b block) int { return cmp.Or(cmp.Compare(a.path, b.path), a.line-b.line) })
		for _, other := range places[1:] {
			first := places[0]
			pair := first.path + " " + other.path
			if filepath.Dir(first.path) == filepath.Dir(other.path) || told[pair] {
				continue
			}
			told[pair] = true
			if !slices.Contains(knownCopies, pair) {
				t.Errorf("%s:%d and %s:%d share more than %d lines: write them once, in a package that both may import",
					first.path, first.line, other.path, other.line, maxCopied)
			}
		}
	}
	for _, pair := range knownCopies {
		if !told[pair] {
			t.Errorf("%s share no long run any more: take them out of knownCopies", pair)
		}
	}
}

// codeLines are the lines of a file that hold code, without indentation, and their numbers.
func codeLines(src string) (code []string, numbers []int) {
	body := strings.Index(src, "\n)\n") // after the imports
	for i, line := range strings.Split(src, "\n") {
		body -= len(line) + 1
		if line = strings.TrimSpace(line); body > 0 || len(line) < 2 || strings.HasPrefix(line, "//") {
			continue
		}
		code, numbers = append(code, line), append(numbers, i+1)
	}
	return code, numbers
}
