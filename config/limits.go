package config

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// userName takes NAME, UID or UID:GID.
func userName(text string) (string, error) {
	const longest = 32 // of useradd
	name, group, hasGroup := strings.Cut(text, ":")
	isID := func(s string) bool {
		_, err := strconv.ParseUint(s, 10, 31)
		return err == nil
	}
	switch {
	case hasGroup && (!isID(name) || !isID(group)):
		return "", errors.New("is no number of a user and one of a group")
	case len(name) > longest || name == "" || strings.HasPrefix(name, "-") ||
		!isWord(strings.ReplaceAll(strings.TrimSuffix(name, "$"), ".", "_")):
		return "", errors.New("is no name or number of a user")
	}
	return text, nil
}

// resources are the limits that a process may be given, as ulimit and
// systemd name them.
func resources() []string {
	return []string{"as", "core", "cpu", "data", "fsize", "memlock", "nofile", "nproc", "stack"}
}

// processLimit takes NAME=NUMBER or NAME=unlimited; a number may be a size.
func processLimit(text string) (string, error) {
	name, value, found := strings.Cut(text, "=")
	switch {
	case !found:
		return "", errors.New("has a limit without a value: write nofile=1024")
	case !slices.Contains(resources(), name):
		return "", errors.New("has no limit of that name: there are " + orList(resources()))
	case value == "unlimited":
		return text, nil
	}
	n, err := parseSize(value)
	if err != nil || n < 0 {
		return "", errors.New("has a value that is no number, size or unlimited")
	}
	return name + "=" + strconv.FormatInt(n, 10), nil
}

// appLogFolder takes the folder of the app's log files.
func appLogFolder(text string) (string, error) {
	if text == Off {
		return "", nil
	}
	return folderPath(text)
}
