package bundle

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// readFile reads a file of the bundle to one byte above the bound, so that
// whoever parses it can tell that it is too long. Only regular files are read:
// a pipe of that name would never end.
func readFile(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading the bundle: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, &Error{Problems: []Problem{{Where: path, Text: "this is no regular file",
			Hint: "put a text file in its place, or delete it"}}}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the bundle: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return data, nil
}

// list names up to three of names, and how many more there are.
func list(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
