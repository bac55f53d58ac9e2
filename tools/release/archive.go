package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entry is a file, a link or, if its name ends with a slash, a folder.
type entry struct {
	name string
	mode int64
	uid  int
	data []byte
	link string
}

func writeTar(w io.Writer, entries []entry, at time.Time) error {
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	archive := tar.NewWriter(w)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: e.mode, Uid: e.uid, Gid: e.uid, Size: int64(len(e.data)), ModTime: at,
			Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		switch {
		case strings.HasSuffix(e.name, "/"):
			header.Typeflag = tar.TypeDir
		case e.link != "":
			header.Typeflag, header.Linkname = tar.TypeSymlink, e.link
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(e.data); err != nil {
			return err
		}
	}
	return archive.Close()
}

func (r *release) writeArchives(context.Context) error {
	for _, t := range r.targets {
		name := "tendril_" + r.version + "_" + t.String()
		entries, err := r.contents(t, name)
		if err != nil {
			return err
		}
		var file bytes.Buffer
		compressed := gzip.NewWriter(&file)
		if err := writeTar(compressed, entries, r.time); err != nil {
			return err
		}
		if err := compressed.Close(); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.out, name+".tar.gz"), file.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) contents(t target, folder string) (entries []entry, err error) {
	add := func(name, from string, mode int64) {
		data, readErr := os.ReadFile(from)
		if err == nil {
			err = readErr
		}
		entries = append(entries, entry{name: path.Join(folder, name), mode: mode, data: data})
	}
	add("tendril", r.binary[t], 0o755)
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		add(name, filepath.Join(r.root, name), 0o644)
	}

	for _, sub := range []string{"completions", "man"} {
		files, readErr := os.ReadDir(filepath.Join(r.work, sub))
		if readErr != nil {
			return nil, readErr
		}
		for _, file := range files {
			if strings.HasSuffix(file.Name(), ".gz") {
				continue
			}
			add(path.Join(sub, file.Name()), filepath.Join(r.work, sub, file.Name()), 0o644)
		}
	}

	if t.os == "linux" {
		for _, name := range []string{"tendril.service", "app.conf", "beside.conf", "tendril.env",
			"tendril.sysusers.conf", "tendril.tmpfiles.conf"} {
			add(path.Join("systemd", name), filepath.Join(r.root, "deploy", "systemd", name), 0o644)
		}
	}
	return entries, err
}

func (r *release) compressPages() (paths []string, err error) {
	pages, err := filepath.Glob(filepath.Join(r.work, "man", "*.1"))
	if err != nil || len(pages) == 0 {
		return nil, errors.Join(err, errors.New("there are no man pages"))
	}

	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return nil, err
		}
		var file bytes.Buffer
		compressed := gzip.NewWriter(&file)
		if _, err := compressed.Write(text); err != nil {
			return nil, err
		}
		if err := compressed.Close(); err != nil {
			return nil, err
		}
		if err := os.WriteFile(page+".gz", file.Bytes(), 0o644); err != nil {
			return nil, err
		}
		paths = append(paths, page+".gz")
	}
	return paths, nil
}
