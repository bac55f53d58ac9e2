package console

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// TokenFile is the name of the file in the data directory that holds the
// console's token.
const TokenFile = "console.token"

// NewToken returns 256 random bits as 64 hexadecimal digits.
func NewToken() string {
	var raw [32]byte
	rand.Read(raw[:]) // never fails: the runtime ends the program where no randomness is to be had
	return hex.EncodeToString(raw[:])
}

// WriteToken puts the token into its file in dataDir, mode 0600, whatever the
// mode of a file that was there.
func WriteToken(dataDir, token string) error {
	return writePrivate(filepath.Join(dataDir, TokenFile), []byte(token+"\n"))
}

// RemoveToken removes the file from dataDir; a missing one is no error.
func RemoveToken(dataDir string) error {
	err := os.Remove(filepath.Join(dataDir, TokenFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ReadToken returns the token in dataDir.
func ReadToken(dataDir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dataDir, TokenFile))
	return strings.TrimSpace(string(data)), err
}

// authorized reports whether the request carries the token. The comparison
// takes the same time whatever was sent. An empty token lets nobody in.
func authorized(r *http.Request, token string) bool {
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token == "" || !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	want, got := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(strings.TrimSpace(given)))
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1
}
