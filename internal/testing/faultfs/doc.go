// Package faultfs is a file system for SQLite that fails, and loses unsynced writes, when a test says so.
//
// An [FS] passes everything on to the ordinary file system. It counts the calls that change a
// file, fails those that it is asked to, and knows for each file what was synced and which
// writes were not. So it can write down what would be left by a power failure at this very
// moment, or by a kill of the process:
//
//	SQLite --> FS --> SQLite's ordinary file system --> a directory
//	           |
//	           +----> what is synced, what is pending --> PowerFailure, Kill --> another directory
//
// It is registered with SQLite under a name, or as the default, which the brokers of other packages
// open their files with.
//
// # Invariants
//
//   - A file is not synced because it is closed: that would hide a missing sync.
//   - What a crash leaves is taken between two changes of files, never in the middle of one.
//   - A file that was removed and made again begins empty.
//
// # What it does not do
//
// It does not lose the creation, removal or renaming of files, which SQLite syncs with the
// directory, and it does not know files that are not SQLite's.
package faultfs
