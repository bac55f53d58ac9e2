package tasks

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"tendril/internal/host/datadir"
)

// TokenFile is the name of the file in the data directory that contains the registry token. The token stays the same
// across restarts because other instances know it.
const TokenFile = "registry-token"

// Token returns the registry token in a data directory, after creating it if it is missing.
func Token(dataDir string) (string, error) {
	path := filepath.Join(dataDir, TokenFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		text = []byte(rand.Text() + rand.Text() + "\n")
		err = datadir.Replace(path, text, 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("reading the registry's token: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// ShareToken stores a registry token in the state folder for the user's other environments, under the endpoint's
// address. It returns the file's path, or "" if there is no state folder.
func ShareToken(stateFolder, endpoint, token string) (path string, err error) {
	if path = sharedPath(stateFolder, endpoint); path == "" {
		return "", nil
	}
	err = os.MkdirAll(filepath.Dir(path), 0o700)
	return path, cmp.Or(err, datadir.Replace(path, []byte(token+"\n"), 0o600))
}

// SharedToken returns the stored token for a queue's endpoint, or "".
func SharedToken(stateFolder, queueURL string) string {
	text, err := os.ReadFile(sharedPath(stateFolder, queueURL))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func sharedPath(stateFolder, endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil || stateFolder == "" || u.Host == "" {
		return ""
	}
	host := strings.Replace(u.Hostname(), "localhost", "127.0.0.1", 1)
	return filepath.Join(stateFolder, "registry-tokens", strings.ReplaceAll(net.JoinHostPort(host, u.Port()), ":", "_"))
}
