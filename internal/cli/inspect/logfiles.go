package inspect

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/observe/eventlog"
)

const (
	maxTail = 1 << 20 // bytes
	maxLine = 64 << 10
)

func storedLines(c *base.CLI, cmd *cobra.Command, f *api.LineFilter, notRunning error) (all []eventlog.Line, err error) {
	paths, err := logFiles(c, cmd, notRunning)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		process, stream := parseLogName(path)
		lines, err := lastLines(path, f, eventlog.Line{Process: process, Stream: stream})
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		all = append(all, lines...)
	}
	return all, nil
}

func logFiles(c *base.CLI, cmd *cobra.Command, notRunning error) ([]string, error) {
	cfg, err := c.LoadSettings(cmd, nil)
	if err != nil {
		return nil, err
	}

	switch {
	case cfg.AppLogDir == "" && errors.Is(notRunning, api.ErrOff):
		return nil, notRunning
	case cfg.AppLogDir == "":
		return nil, base.Fail(base.ExitNotFound, notRunning, "the logs of a stopped environment are read from files: "+
			"start it with --app-log-dir DIR, and add the same option here", "'tendril events' shows its history")
	}

	paths, err := filepath.Glob(filepath.Join(cfg.AppLogDir, "*.log"))
	if err != nil {
		return nil, fmt.Errorf("looking for log files in %s: %w", cfg.AppLogDir, err)
	}
	if len(paths) == 0 {
		return nil, base.NotFoundf("no log files in %s", cfg.AppLogDir).
			Hint("use the environment's folder: --app-log-dir DIR")
	}
	return paths, nil
}

func parseLogName(path string) (process, stream string) {
	name := strings.TrimSuffix(filepath.Base(path), ".log")
	for _, stream := range []string{"stdout", "stderr"} {
		if process, ok := strings.CutSuffix(name, "."+stream); ok {
			return process, stream
		}
	}
	return name, ""
}

func lastLines(path string, f *api.LineFilter, template eventlog.Line) (lines []eventlog.Line, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	skipped, err := seekTail(file, maxTail)
	if err != nil {
		return nil, err
	}

	text := bufio.NewScanner(file)
	text.Buffer(nil, maxLine)
	if skipped > 0 {
		text.Scan() // the first line may be incomplete
	}

	q := eventlog.LineQuery{Process: f.Process, Level: f.Level, Match: f.Match}
	for text.Scan() {
		l := template
		l.Text = text.Text()
		if q.Matches(&l) {
			lines = append(lines, l)
		}
	}
	return lines[max(len(lines)-f.Limit, 0):], text.Err()
}

func seekTail(file *os.File, limit int64) (skipped int64, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, errors.New("not a regular file")
	}
	return file.Seek(max(info.Size()-limit, 0), io.SeekStart)
}
