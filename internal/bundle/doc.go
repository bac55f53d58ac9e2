// Package bundle reads an Elastic Beanstalk source bundle.
//
// A bundle is a folder that holds an app and says how to run it, or a zip
// archive of one:
//
//	app.zip --> IsArchive, Unpack --> DIR/     whole or not at all, never outside
//
//	DIR/
//	  Procfile               web: the app            -> Processes, Web
//	                         name: one more process
//	  Buildfile              name: command           -> Build
//	  .ebextensions/*.config option_settings         -> Settings, Environment
//	                         Resources               -> Resources, Unsupported
//	                         container_commands      -> ContainerCommands
//	                         packages, files, ...    -> Machine
//	                         any other section       -> Unsupported
//	  env.yaml               OptionSettings          -> Settings, the strongest
//	                         EnvironmentLinks        -> Links
//	                         name, tier              -> Manifest
//	  .platform/hooks/STAGE/ programs                -> Hooks
//	  .platform/confighooks/ programs                -> ConfigHooks
//	  cron.yaml                                      -> Cron
//	  package.json, application.py, ...              -> Default, for want of a Procfile
//
//	Plan: prebuild hooks, Buildfile, container commands, predeploy hooks, start, postdeploy hooks
//
// [Open] reads all of it at once and starts nothing. A [Bundle] is a value:
// the files are closed again, and a change on disk is seen by the next Open.
//
// # Invariants
//
// The first of Processes is web, where there is one; the others follow in the
// order of the file. Every process, setting and link has a line number, so that
// whoever acts on it can point at the line that asked for it. The value of a
// setting is the text that was written, whatever type YAML sees in it. The last
// setting of an option is in force: configuration files count in the order of
// their names, byte by byte, and env.yaml after them. What Elastic Beanstalk would
// act on and this package does not is named in Unsupported, never silently
// skipped. No value that looks secret is in an error, a finding, or the String of
// anything here.
//
// # When something is wrong
//
// The error about bad files holds the [Problem] of every file at once, each
// with file and line and what to write instead. Files are read to a bound, and what
// would keep a parser busy is refused before it is parsed: too many words, too
// deep nesting. Aliases share what they name, so that they expand nothing; what merge
// keys stand for is counted. A folder without a Procfile is not an error by itself, since
// the command may come from elsewhere: [Bundle.Web] gives the advice when the app is
// asked for, and [Bundle.WithDefault] takes what a platform of Elastic Beanstalk would
// run.
//
// An archive is read twice: its list of entries is refused or found harmless
// before anything is written; then everything that is written is counted, since
// headers lie. Links are made last and are followed once, by a system that does not
// leave the folder.
//
// # Its size
//
// A bundle has a dozen kinds of files and sections, each with its own mistakes and places: settings, processes, hooks,
// commands, packages, users, services. They share the readers of YAML and JSON, the order of the files and the
// reports of what is not used, so that packages of their own would mostly import each other.
//
// # What it does not do
//
// It runs no command, expands no variable, and judges no value of a setting. It
// does not read .ebignore: a folder is run as it is, an archive as it was made.
package bundle
