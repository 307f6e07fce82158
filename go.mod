// This module holds documentation only: every component is a module of its own.
module github.com/godwit-otel/godwit

go 1.25.0
