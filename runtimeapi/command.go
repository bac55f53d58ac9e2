package runtimeapi

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// defaultPath is where programs are looked for when the environment does not
// say.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// findProgram returns the file to execute for the first word of a command. It
// looks where the function's own environment says, which may not be ours.
func findProgram(name, dir, path string) (string, error) {
	if strings.Contains(name, "/") {
		file := name
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		if err := executable(file); err != nil {
			return "", fmt.Errorf("the function's command %s cannot be run: %w", name, err)
		}
		return file, nil
	}
	for _, folder := range filepath.SplitList(cmp.Or(path, defaultPath)) {
		if !filepath.IsAbs(folder) {
			folder = filepath.Join(dir, folder)
		}
		if file := filepath.Join(folder, name); executable(file) == nil {
			return file, nil
		}
	}
	if executable(filepath.Join(dir, name)) == nil {
		return "", fmt.Errorf("the function's command %s is not in the PATH of its environment; to run the one in %s "+
			"write ./%s", name, dir, name)
	}
	return "", fmt.Errorf("the function's command %s is not in the PATH of its environment: give its path", name)
}

// executable says why file is no program.
func executable(file string) error {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder: give the program in it", file)
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not executable: run chmod +x on it, or name its interpreter first, as in python3 %s", file,
			filepath.Base(file))
	}
	return nil
}
