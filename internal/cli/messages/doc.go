// Package messages lists, receives, moves, deletes and replays messages.
package messages
