// Package scaffold writes the first files of a folder: a Procfile and a tendril.yaml for the app it recognises.
//
//	files of the folder --> Recognize --> App --> Files --> Procfile, tendril.yaml
//
// [Recognize] reads a file system and starts nothing. It knows an app by the files that its ecosystem asks for, such
// as package.json or manage.py, and looks into them where they say how it starts. [App.Files] are texts: whoever calls
// decides where they go, and never overwrites.
//
// # What it does not do
//
// It installs and builds nothing; [App.Before] says what must be done once. It does not start containers: a folder
// that only has a Dockerfile is refused, with what to do instead.
package scaffold
