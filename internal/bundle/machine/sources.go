package machine

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"tendril/internal/bundle"
)

const (
	maxDownload     = 1 << 30 // bytes
	maxUnpacked     = 4 << 30 // bytes, all files together
	maxEntries      = 200_000 // of an archive
	downloadTimeout = 30 * time.Minute
	maxRedirects    = 5
)

type download struct {
	*os.File
	temporary bool
}

func (d *download) Close() error {
	err := d.File.Close()
	if d.temporary {
		err = errors.Join(err, os.Remove(d.Name()))
	}
	return err
}

func openSource(ctx context.Context, source string) (*download, error) {
	if filepath.IsAbs(source) {
		// O_NONBLOCK keeps the open from blocking on a FIFO.
		f, err := os.OpenFile(source, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return nil, err
		}
		if err := checkSource(f); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return &download{File: f}, nil
	}

	f, err := os.CreateTemp("", "tendril-download-*")
	if err != nil {
		return nil, err
	}

	d := &download{File: f, temporary: true}
	if err := fetch(ctx, source, f); err != nil {
		return nil, errors.Join(fmt.Errorf("downloading %s: %w", shownURL(source), err), d.Close())
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(err, d.Close())
	}

	return d, nil
}

func checkSource(f *os.File) error {
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", f.Name())
	case info.Size() > maxDownload:
		return fmt.Errorf("%s has more than %d bytes", f.Name(), maxDownload)
	}
	return nil
}

// shownURL omits the parts of a URL that may be secret.
func shownURL(source string) string {
	u, err := url.Parse(source)
	if err != nil {
		return "the source"
	}
	u.User = nil
	u.RawQuery = ""
	u.Fragment = ""
	return u.String()
}

// fetch follows redirects to https and, from http, to http on this machine.
func fetch(ctx context.Context, source string, to io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, source, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := downloadClient().Do(req)
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		return wrapped.Err // without the URL, which may be secret
	}
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the server responded with %s", answer.Status)
	}

	n, err := io.Copy(to, io.LimitReader(answer.Body, maxDownload+1))
	if err == nil && n > maxDownload {
		err = fmt.Errorf("more than %d bytes", maxDownload)
	}
	return err
}

func downloadClient() *http.Client {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: 30 * time.Second,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ResponseHeaderTimeout: time.Minute,
		ForceAttemptHTTP2: true, DisableKeepAlives: true}
	return &http.Client{Transport: transport, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if len(via) >= maxRedirects {
			return errors.New("too many redirects")
		}
		isOnMachine := via[0].URL.Scheme == "http" && bundle.IsLoopback(next.URL.Hostname())
		if next.URL.Scheme != "https" && !isOnMachine {
			return errors.New("redirected to a URL without https")
		}
		return nil
	}}
}

func (a *Applier) source(ctx context.Context, s *bundle.Source) (Outcome, error) {
	archive, err := openSource(ctx, s.URL)
	if err != nil {
		return unchanged, err
	}
	defer archive.Close()
	if err := os.MkdirAll(s.Dir, newFolder); err != nil {
		return unchanged, err
	}

	root, err := os.OpenRoot(s.Dir)
	if err != nil {
		return unchanged, err
	}
	defer root.Close()
	u := unpacking{root: root, left: maxUnpacked}
	if err := u.unpack(archive.File); err != nil {
		return changedIf(u.changed), fmt.Errorf("unpacking %s: %w", shownURL(s.URL), err)
	}

	return changedIf(u.changed), nil
}

// unpacking unpacks an archive. Neither names nor links can lead outside root.
type unpacking struct {
	root    *os.Root
	left    int64 // bytes
	entries int
	changed bool
}

func (u *unpacking) unpack(archive *os.File) error {
	begin := make([]byte, 4)
	if _, err := io.ReadFull(archive, begin); err != nil {
		return errors.New("not an archive")
	}
	if _, err := archive.Seek(0, io.SeekStart); err != nil {
		return err
	}

	switch {
	case bytes.HasPrefix(begin, []byte("PK\x03\x04")), bytes.HasPrefix(begin, []byte("PK\x05\x06")):
		return u.unpackZip(archive)
	case bytes.HasPrefix(begin, []byte("\x1f\x8b")):
		unzipped, err := gzip.NewReader(archive)
		if err != nil {
			return err
		}
		return u.unpackTar(unzipped)
	case bytes.HasPrefix(begin, []byte("BZh")):
		return u.unpackTar(bzip2.NewReader(archive))
	}

	return u.unpackTar(archive)
}

func (u *unpacking) unpackTar(from io.Reader) error {
	r := tar.NewReader(from)
	for {
		h, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, tar.ErrHeader):
			return errors.New("it is neither a tar archive (plain, gzip or bzip2) nor a zip archive")
		case err != nil && !errors.Is(err, tar.ErrInsecurePath):
			return err
		}

		info := h.FileInfo()
		switch h.Typeflag {
		case tar.TypeDir, tar.TypeReg, tar.TypeSymlink:
		default:
			continue // skip comments, devices and hard links
		}

		if err := u.unpackEntry(h.Name, info.Mode(), h.Linkname, func() (io.ReadCloser, error) {
			return io.NopCloser(r), nil
		}); err != nil {
			return err
		}
	}
}

func (u *unpacking) unpackZip(archive *os.File) error {
	info, err := archive.Stat()
	if err != nil {
		return err
	}
	r, err := zip.NewReader(archive, info.Size())
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return err
	}

	for _, f := range r.File {
		target, err := linkTarget(f)
		if err != nil {
			return err
		}
		if err := u.unpackEntry(f.Name, f.Mode(), target, f.Open); err != nil {
			return err
		}
	}
	return nil
}

func linkTarget(f *zip.File) (string, error) {
	if f.Mode().Type() != fs.ModeSymlink {
		return "", nil
	}
	content, err := f.Open()
	if err != nil {
		return "", err
	}
	const maxLink = 4 << 10
	text, err := io.ReadAll(io.LimitReader(content, maxLink))
	return string(text), errors.Join(err, content.Close())
}

func (u *unpacking) unpackEntry(name string, mode fs.FileMode, to string, content func() (io.ReadCloser, error)) error {
	u.entries++
	if u.entries > maxEntries {
		return fmt.Errorf("more than %d entries", maxEntries)
	}

	name = path.Clean(strings.TrimPrefix(name, "/"))
	switch {
	case name == ".":
		return nil
	case !filepath.IsLocal(name):
		return fmt.Errorf("the entry %q points outside the folder", name)
	case mode.IsDir():
		return u.root.MkdirAll(name, newFolder)
	}

	if err := u.root.MkdirAll(path.Dir(name), newFolder); err != nil {
		return err
	}
	if mode.Type() == fs.ModeSymlink {
		return u.writeLink(name, to)
	}

	from, err := content()
	if err != nil {
		return err
	}

	return errors.Join(u.writeFile(name, mode.Perm()|0o400, from), from.Close())
}

func (u *unpacking) writeLink(name, to string) error {
	if filepath.IsAbs(to) || !filepath.IsLocal(path.Join(path.Dir(name), to)) {
		return fmt.Errorf("the link %q points outside the folder", name)
	}
	if current, err := u.root.Readlink(name); err == nil && current == to {
		return nil
	}
	u.changed = true
	if err := u.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return u.root.Symlink(to, name)
}

func (u *unpacking) writeFile(name string, mode fs.FileMode, from io.Reader) (err error) {
	staged := path.Join(path.Dir(name), "."+path.Base(name)+".unpacking")
	to, err := u.root.OpenFile(staged, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}

	defer func() {
		err = errors.Join(err, to.Close())
		if removed := u.root.Remove(staged); !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}()
	n, err := io.Copy(to, io.LimitReader(from, u.left+1))
	u.left -= n
	if err == nil && u.left < 0 {
		err = fmt.Errorf("its files have more than %d bytes", int64(maxUnpacked))
	}
	if err != nil {
		return err
	}

	if info, err := u.root.Lstat(name); err == nil && info.Mode().IsRegular() && info.Size() == n && info.Mode().Perm() == mode {
		if equal, err := u.equal(name, to); err != nil || equal {
			return err
		}
	}

	u.changed = true
	if err := to.Chmod(mode); err != nil {
		return err
	}

	return u.root.Rename(staged, name)
}

func (u *unpacking) equal(name string, staged *os.File) (bool, error) {
	if _, err := staged.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	existing, err := u.root.Open(name)
	if err != nil {
		return false, err
	}
	defer existing.Close()
	return sameContent(existing, staged)
}
