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
// It does not simulate losing the creation, removal or renaming of files, which SQLite syncs with the directory, and
// ignores files not opened by SQLite.
package faultfs
