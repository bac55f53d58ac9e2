package broker

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// conn is an SQLite connection without the overhead of database/sql. It is not safe for concurrent use.
type conn struct {
	raw   driver.Conn
	stmts map[string]driver.Stmt
	args  []driver.NamedValue
	dest  []driver.Value
}

func openConn(path, vfs string) (*conn, error) {
	dsn := url.URL{Scheme: "file", OmitHost: true, Path: path}
	if vfs != "" {
		dsn.RawQuery = url.Values{"vfs": {vfs}}.Encode()
	}
	raw, err := (&sqlite.Driver{}).Open(dsn.String())
	if err != nil {
		return nil, err
	}
	return &conn{raw: raw, stmts: map[string]driver.Stmt{}}, nil
}

// close closes the statements first, because open ones keep the connection open.
func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	c.stmts = nil
	return errors.Join(append(errs, c.raw.Close())...)
}

func (c *conn) script(text string) error {
	_, err := c.raw.(driver.ExecerContext).ExecContext(context.Background(), text, nil)
	return err
}

func (c *conn) exec(text string, args ...any) (int64, error) {
	s, err := c.prepare(text)
	if err != nil {
		return 0, err
	}
	result, err := s.(driver.StmtExecContext).ExecContext(context.Background(), c.ordinal(args))
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// row is a result row. NULL reads as 0, "" or nil.
type row []driver.Value

func (r row) int(i int) int64 {
	n, _ := r[i].(int64)
	return n
}

func (r row) text(i int) string {
	s, _ := r[i].(string)
	return s
}

func (r row) bytes(i int) []byte {
	b, _ := r[i].([]byte)
	return b
}

// query calls each for every row, which is valid only during the call. each must not use c.
func (c *conn) query(each func(row row), text string, args ...any) error {
	s, err := c.prepare(text)
	if err != nil {
		return err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(context.Background(), c.ordinal(args))
	if err != nil {
		return err
	}

	n := len(rows.Columns())
	c.dest = slices.Grow(c.dest[:0], n)[:n]
	for {
		err := rows.Next(c.dest)
		if err == io.EOF {
			return rows.Close()
		}
		if err != nil {
			return errors.Join(err, rows.Close())
		}
		each(c.dest)
	}
}

func (c *conn) integer(text string, args ...any) (n int64, err error) {
	err = c.query(func(row row) { n = row.int(0) }, text, args...)
	return n, err
}

func (c *conn) exists(key int64) (bool, error) {
	n, err := c.integer(`SELECT count(*) FROM messages WHERE id = ?`, key)
	return n > 0, err
}

// The result is valid until the next call.
func (c *conn) ordinal(args []any) []driver.NamedValue {
	c.args = c.args[:0]
	for i, v := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return c.args
}

func (c *conn) prepare(text string) (driver.Stmt, error) {
	if s := c.stmts[text]; s != nil {
		return s, nil
	}
	s, err := c.raw.Prepare(text)
	if err != nil {
		return nil, fmt.Errorf("preparing %q: %w", text, err)
	}
	c.stmts[text] = s
	return s, nil
}

func isFull(err error) bool { return resultCode(err) == sqlite3.SQLITE_FULL }

func isCorrupt(err error) bool {
	code := resultCode(err)
	return code == sqlite3.SQLITE_CORRUPT || code == sqlite3.SQLITE_NOTADB
}

func resultCode(err error) int {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return 0
	}
	return e.Code() & 0xff
}

// pragma is quick_check or integrity_check, which also compares the indexes with the tables.
func (c *conn) check(pragma string) error {
	var found string
	if err := c.query(func(row row) { found = row.text(0) }, "PRAGMA "+pragma+"(1)"); err != nil {
		return err
	}
	if found != "ok" {
		return fmt.Errorf("%w: %s", errDamaged, found)
	}
	return nil
}
