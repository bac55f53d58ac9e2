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

	shared := &config.Settings{DataDir: state}
	d, err := OpenDataDirectory(shared)
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
	if err := errors.Join(moveData(state, s.DataDir), d.Close()); err != nil {
		return fmt.Errorf("taking over the queues in %s: %w", state, err)
	}
	q.opts.log("environment").Info("data directory taken over", "from", state, "to", s.DataDir,
		"queues", names)
	return nil
}

// moveData moves the database last, so that the next start repeats an interrupted move.
func moveData(from, to string) error {
	entries, err := os.ReadDir(from)
	if err == nil {
		err = datadir.Make(to)
	}
	if err != nil {
		return err
	}

	if exists(filepath.Join(from, databaseFile+"-wal")) {
		return errors.New("the database was not closed cleanly")
	}
	// CreatedFile identifies the database in its directory; the next start creates one in the new directory.
	if err := os.Remove(filepath.Join(from, broker.CreatedFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	notMoved := []string{databaseFile, broker.CreatedFile, claimFile, api.InstanceFile}
	for _, entry := range entries {
		name := entry.Name()
		if !isOwn(entry) || slices.Contains(notMoved, name) {
			continue
		}
		if err := mergeInto(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return os.Rename(filepath.Join(from, databaseFile), filepath.Join(to, databaseFile))
}

// mergeInto moves a file, or a folder's entries if the folder to exists. It replaces existing files.
func mergeInto(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil || !exists(to) {
		return os.Rename(from, to)
	}
	for _, entry := range entries {
		if err := mergeInto(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())); err != nil {
			return err
		}
	}
	return os.Remove(from)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
