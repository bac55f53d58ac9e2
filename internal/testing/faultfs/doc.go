// Package faultfs is a file system for SQLite that injects failures and simulates the loss of unsynced writes.
//
//	SQLite --> FS --> SQLite's default file system --> a directory
//	           |
//	           +----> synced and pending writes --> PowerFailure, Kill --> another directory
//
// # Invariants
//
//   - Closing a file does not sync it, because that would hide a missing sync.
//   - A crash happens between two writes, never in the middle of one.
//   - A file that is removed and recreated starts empty.
//
// The creation, removal and renaming of files, which SQLite syncs with the directory, are never lost. Files not opened
// by SQLite are ignored.
package faultfs
