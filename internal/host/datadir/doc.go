// Package datadir makes the data directory and its files, for their owner alone.
//
// Three packages write there: bundle, broker and console. A data directory that
// another user owns or may write is refused, since who can put a link or a file
// in it decides what tendril writes to. Its files are opened with mode 0600,
// never through a symbolic link, and only where they are regular files.
//
// What it does not do: it looks at no folder above the data directory, and keeps
// nothing that root does away.
package datadir
