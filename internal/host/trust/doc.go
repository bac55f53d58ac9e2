// Package trust checks whether other users control the contents of a file.
//
// Files that tendril finds by itself, such as tendril.yaml in the working folder, may contain commands. They are
// trusted only if no other user except root could have written them:
//
//	owner    the user, or root
//	mode     not writable by others, and by the group only if it is the user's private group (GID equal to UID)
//	folder   the same, since write access allows replacing the files in it; in a folder with
//	         the sticky bit, such as /tmp, users cannot replace each other's files
//
// A symbolic link's target and its folder are checked too. Access control lists and folders further up are not.
package trust
