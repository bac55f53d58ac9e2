// Package trust tells whether other users decide what is in a file.
//
// What tendril finds by itself, such as tendril.yaml in the working folder, may name
// commands to run. It is believed only when nobody but the user that runs tendril, and
// root, could have written it:
//
//	owner    the user, or root
//	mode     not writable by others; by the group only where that is the user's own,
//	         which has the user's number
//	folder   the same, since who may write to it may replace what is in it; in a folder
//	         with the sticky bit, such as /tmp, nobody can replace another's file
//
// A symbolic link is followed: the file counts, and both folders. Access control lists
// and the folders further up are not looked at.
package trust
