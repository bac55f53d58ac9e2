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

// TokenFile contains the registry token. Other instances know the token, so it survives restarts.
const TokenFile = "registry-token"

// Token returns the registry token in a data directory, creating it if necessary.
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

// ShareToken stores an endpoint's registry token for the user's other environments. It returns the file's path, or ""
// without a state folder.
func ShareToken(stateFolder, endpoint, token string) (path string, err error) {
	if path = sharedPath(stateFolder, endpoint); path == "" {
		return "", nil
	}
	err = os.MkdirAll(filepath.Dir(path), 0o700)
	return path, cmp.Or(err, datadir.Replace(path, []byte(token+"\n"), 0o600))
}

// SharedToken returns the token stored for a queue's endpoint, or "".
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
