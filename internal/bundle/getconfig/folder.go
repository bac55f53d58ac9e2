package getconfig

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tendril/internal/host/datadir"
)

// FileVariable is the environment variable with the path of a process's facts.
const FileVariable = "TENDRIL_GET_CONFIG"

const (
	folderName  = "get-config"
	programName = "get-config"
	currentName = "current"
	ownerFile   = "facts.json" // readable by tendril's user
	appFile     = "app.json"   // readable by the app's user, if different
	defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// Folder contains an environment's facts and a link to the get-config command. The zero value has no facts. Publish,
// Serve and Remove must not be called concurrently.
type Folder struct {
	path  string
	uid   int      // the app's user; -1 if it runs as tendril's user
	claim *os.File // lock of a temporary folder, else nil
}

// Create creates the folder in dataDir, or a temporary one if dataDir is "". program is the target of the get-config
// link. uid and gid identify the app's user; -1 means tendril's user.
func (f *Folder) Create(dataDir, program string, uid, gid int) (err error) {
	if dataDir == "" {
		removeLeftovers()
		f.path, f.claim, err = makeTemp()
	} else {
		f.path, err = makeEmpty(dataDir)
	}
	if err != nil {
		return fmt.Errorf("creating the folder for get-config's values: %w", err)
	}

	bin := f.bin()
	if err = errors.Join(os.Mkdir(bin, 0o700), os.Symlink(program, filepath.Join(bin, programName))); err != nil {
		return fmt.Errorf("linking get-config: %w", err)
	}
	f.uid = uid
	if uid < 0 {
		return nil
	}

	// Other users can pass through the folder to the command, but cannot read the facts.
	if dataDir != "" {
		err = datadir.AllowTraversal(dataDir, gid)
	}
	return errors.Join(err, os.Chmod(f.path, 0o711), os.Chmod(bin, 0o755))
}

func makeEmpty(dataDir string) (path string, err error) {
	path, err = filepath.Abs(filepath.Join(dataDir, folderName))
	if err == nil {
		err = os.RemoveAll(path)
	}
	if err == nil {
		err = os.Mkdir(path, 0o700)
	}
	return path, err
}

func (f *Folder) bin() string { return filepath.Join(f.path, "bin") }

func (f *Folder) version(number int) string { return filepath.Join(f.path, fmt.Sprint("v", number)) }

// Publish writes a version's facts, replacing earlier ones.
func (f *Folder) Publish(number int, facts *Facts) error {
	text, err := json.Marshal(facts)
	if err != nil {
		return err
	}

	dir := f.version(number)
	if err := os.Mkdir(dir, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("writing get-config's values: %w", err)
	}

	err = datadir.Replace(filepath.Join(dir, ownerFile), text, 0o600)
	if err == nil && f.uid >= 0 {
		err = f.publishForApp(dir, text)
	}
	if err != nil {
		return fmt.Errorf("writing get-config's values: %w", err)
	}

	return nil
}

// Root never reads the copy, because the app's user could change it.
func (f *Folder) publishForApp(dir string, text []byte) error {
	copied := filepath.Join(dir, appFile)
	if err := os.Chmod(dir, 0o711); err != nil { // regardless of the umask
		return err
	}
	if err := datadir.Replace(copied, text, 0o600); err != nil {
		return err
	}
	return os.Lchown(copied, f.uid, -1)
}

// Serve makes a version's facts the ones that [Open] reads by default.
func (f *Folder) Serve(number int) error {
	current := filepath.Join(f.path, currentName)
	fresh := current + ".new"
	err := os.Symlink(filepath.Base(f.version(number)), fresh)
	return cmp.Or(err, os.Rename(fresh, current))
}

// Remove deletes a version's facts.
func (f *Folder) Remove(number int) error { return os.RemoveAll(f.version(number)) }

// Close deletes the folder.
func (f *Folder) Close() error {
	err := os.RemoveAll(f.path)
	if f.claim != nil {
		err = errors.Join(err, f.claim.Close())
	}
	return err
}

// Environ returns a copy of env with the variables that select get-config and a version's facts. asApp is true for
// processes of the app's user.
func (f *Folder) Environ(env []string, number int, asApp bool) []string {
	file := ownerFile
	if asApp && f.uid >= 0 {
		file = appFile
	}

	path := ""
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		value, isPath := strings.CutPrefix(entry, "PATH=")
		if isPath {
			path = value
		}
		return isPath || strings.HasPrefix(entry, FileVariable+"=")
	})
	return append(env, "PATH="+f.bin()+string(filepath.ListSeparator)+cmp.Or(path, defaultPath),
		FileVariable+"="+filepath.Join(f.version(number), file))
}

// Open reads the facts in file or, if file is "", the serving version's facts in dataDir. If they do not exist, the
// error wraps [fs.ErrNotExist].
func Open(file, dataDir string) (*Facts, error) {
	if file == "" {
		file = filepath.Join(dataDir, folderName, currentName, ownerFile)
	}

	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) { // the process may have outlived its version
		folder, name := filepath.Dir(filepath.Dir(file)), filepath.Base(file)
		text, err = os.ReadFile(filepath.Join(folder, currentName, name))
	}

	if err != nil {
		return nil, err
	}

	facts := &Facts{}
	if err := json.Unmarshal(text, facts); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}

	return facts, nil
}
