package environment

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"tendril/api"
	"tendril/broker"
	"tendril/internal/config"
	"tendril/internal/host/datadir"
)

// takeOver moves the data directory that older versions shared between all environments of a user, if it contains one
// of this environment's queues.
func (q *queues) takeOver(context.Context) error {
	s := q.settings.now()
	state := q.opts.stateFolder()
	if !s.AnyEmbedded() || q.opts.Config.IsSet("data-dir") || state == "" {
		return nil
	}
	hasOwn := exists(filepath.Join(s.DataDir, databaseFile)) || exists(filepath.Join(s.DataDir, broker.CreatedFile))
	if hasOwn || !exists(filepath.Join(state, databaseFile)) {
		return nil
	}

	d, err := OpenDataDirectory(state)
	if errors.Is(err, ErrConflict) { // another environment runs on it and keeps it
		return nil
	}
	if err != nil {
		return fmt.Errorf("taking over the queues in %s: %w; move them away, or use them with --data-dir %s", state, err,
			state)
	}

	var names []string
	for _, stored := range d.Queues {
		names = append(names, stored.Name)
	}
	if !slices.ContainsFunc(s.Queues, func(set config.QueueSettings) bool { return slices.Contains(names, set.Name) }) {
		return d.Close()
	}
	left, err := moveData(state, s.DataDir)
	if err := errors.Join(err, d.Close()); err != nil {
		return fmt.Errorf("taking over the queues in %s: %w", state, err)
	}
	log := q.opts.log("environment")
	log.Info("data directory taken over", "from", state, "to", s.DataDir, "queues", names)
	if len(left) > 0 {
		log.Warn("files not taken over, because the new data directory has its own", "files", left)
	}
	return nil
}

// moveData moves the database last, so that the next start repeats an interrupted move. It returns the files that it
// left because both directories have one.
func moveData(from, to string) (left []string, err error) {
	entries, err := os.ReadDir(from)
	if err == nil {
		err = datadir.Make(to)
	}
	if err != nil {
		return nil, err
	}

	if exists(filepath.Join(from, databaseFile+"-wal")) {
		return nil, errors.New("the database was not closed cleanly")
	}
	for _, name := range companionFiles {
		if err := os.Remove(filepath.Join(from, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}

	notMoved := append([]string{databaseFile, claimFile, api.InstanceFile}, companionFiles...)
	for _, entry := range entries {
		name := entry.Name()
		if !isDataFile(entry) || slices.Contains(notMoved, name) {
			continue
		}
		more, err := mergeInto(filepath.Join(from, name), filepath.Join(to, name))
		if err != nil {
			return nil, err
		}
		left = append(left, more...)
	}
	return left, os.Rename(filepath.Join(from, databaseFile), filepath.Join(to, databaseFile))
}

func mergeInto(from, to string) (left []string, err error) {
	if !exists(to) {
		return nil, os.Rename(from, to)
	}
	if !isFolder(from) || !isFolder(to) {
		return []string{from}, nil
	}

	entries, err := os.ReadDir(from)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		more, err := mergeInto(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name()))
		if err != nil {
			return nil, err
		}
		left = append(left, more...)
	}
	if len(left) > 0 {
		return left, nil
	}
	return nil, os.Remove(from)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func isFolder(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}
