package archives

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"tendril/queue"
)

const chunkSize = 1 << 20

// Chunks is the archive API of the tendril that serves the queue.
type Chunks interface {
	// WriteArchive stores a chunk. All chunks of an upload have the same upload ID. The last chunk, which ends at size,
	// completes the archive.
	WriteArchive(ctx context.Context, name, upload string, offset, size int64, data []byte) error
	// ReadArchive returns the chunk at offset and the archive's size. The error has the code
	// queue.CodeResourceNotFound if the archive does not exist.
	ReadArchive(ctx context.Context, name string, offset int64) (data []byte, size int64, err error)
	DeleteArchive(ctx context.Context, name string) error
}

// Server is a store on the tendril that serves the queue.
type Server struct{ Chunks Chunks }

// Put implements [Store].
func (s Server) Put(ctx context.Context, name string, archive io.ReaderAt, size int64) error {
	upload := rand.Text()
	buffer := make([]byte, min(chunkSize, size))
	for offset := int64(0); offset < size; {
		chunk := buffer[:min(chunkSize, size-offset)]
		if _, err := archive.ReadAt(chunk, offset); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err := s.Chunks.WriteArchive(ctx, name, upload, offset, size, chunk); err != nil {
			return err
		}
		offset += int64(len(chunk))
	}
	return nil
}

// Get implements [Store].
func (s Server) Get(ctx context.Context, name string, w io.Writer) error {
	for offset := int64(0); ; {
		data, size, err := s.Chunks.ReadArchive(ctx, name, offset)
		if err != nil {
			return notFound(err)
		}
		if len(data) == 0 && offset < size {
			return ErrOtherContent
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
		offset += int64(len(data))
		if offset >= size {
			return nil
		}
	}
}

// Delete implements [Store].
func (s Server) Delete(ctx context.Context, name string) error {
	return s.Chunks.DeleteArchive(ctx, name)
}

func notFound(err error) error {
	if errors.Is(err, &queue.Error{Code: queue.CodeResourceNotFound}) {
		return fmt.Errorf("%w: %w", os.ErrNotExist, err)
	}
	return err
}

const (
	maxArchives = 100
	// The next upload deletes incomplete uploads that got no chunk for staleUpload.
	staleUpload = time.Hour
	partPrefix  = ".part-"
)

var nameForm = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*$`)

func isName(s string) bool { return len(s) <= 200 && nameForm.MatchString(s) }

// ServedFolder stores archives on the tendril that serves the queue.
type ServedFolder string

// WriteArchive implements [Chunks].
func (f ServedFolder) WriteArchive(_ context.Context, name, upload string, offset, size int64, data []byte) error {
	end := offset + int64(len(data))
	isChunk := len(data) > 0 && len(data) <= chunkSize && offset >= 0 && offset <= size-int64(len(data))
	if !isName(name) || !isName(upload) || !isChunk || size > MaxSize {
		return queue.Errorf(queue.CodeInvalidParameterValue, "The name, upload ID or chunk of the archive is "+
			"invalid: an archive has at most %d bytes, a chunk at most %d.", MaxSize, chunkSize)
	}
	part := filepath.Join(string(f), partPrefix+upload)
	if offset == 0 {
		if err := f.admitUpload(); err != nil {
			return err
		}
	} else if info, err := os.Stat(part); err != nil || info.Size() < offset {
		return queue.Errorf(queue.CodeInvalidParameterValue, "The chunk of the archive does not follow the previous one.")
	}

	complete := end == size
	if err := writeChunk(part, data, offset, complete); err != nil || !complete {
		return err
	}
	return os.Rename(part, filepath.Join(string(f), name))
}

func writeChunk(path string, data []byte, offset int64, sync bool) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(data, offset)
	if err == nil && sync {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func (f ServedFolder) admitUpload() error {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(string(f))
	if err != nil {
		return err
	}

	count := 0
	for _, e := range entries {
		if isStaleUpload(e) {
			_ = os.Remove(filepath.Join(string(f), e.Name())) // the next upload retries
			continue
		}
		count++
	}
	if count >= maxArchives {
		return queue.Errorf(queue.CodeOverLimit, "This server already stores %d archives: delete files in %s that no environment "+
			"uses.", count, string(f))
	}
	return nil
}

func isStaleUpload(e os.DirEntry) bool {
	if !strings.HasPrefix(e.Name(), partPrefix) {
		return false
	}
	info, err := e.Info()
	return err == nil && time.Since(info.ModTime()) > staleUpload
}

// ReadArchive implements [Chunks].
func (f ServedFolder) ReadArchive(_ context.Context, name string, offset int64) (data []byte, size int64, err error) {
	if !isName(name) || offset < 0 {
		return nil, 0, queue.Errorf(queue.CodeInvalidParameterValue, "The archive's name or offset is invalid.")
	}
	file, err := os.Open(filepath.Join(string(f), name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, queue.Errorf(queue.CodeResourceNotFound, "Archive %s not found.", name)
	}
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, 0, err
	}

	data = make([]byte, min(chunkSize, max(info.Size()-offset, 0)))
	_, err = file.ReadAt(data, offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return data, info.Size(), err
}

// DeleteArchive implements [Chunks].
func (f ServedFolder) DeleteArchive(ctx context.Context, name string) error {
	if !isName(name) {
		return queue.Errorf(queue.CodeInvalidParameterValue, "The archive's name is invalid.")
	}
	return Folder(f).Delete(ctx, name)
}
