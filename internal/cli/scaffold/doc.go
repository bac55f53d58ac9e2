// Package scaffold generates a Procfile and a tendril.yaml for the app in a folder.
//
//	files of the folder --> Recognize --> App --> Files --> Procfile, tendril.yaml
//
// [Recognize] identifies an app by its ecosystem's files, such as package.json or manage.py, and determines how to
// start it. It does not run anything. [App.Files] returns texts; the caller writes them and does not overwrite existing
// files.
//
// The package installs and builds nothing: [App.Before] lists the commands to run once. It does not support containers:
// a folder that only contains a Dockerfile is refused with advice.
package scaffold
