module github.com/felixge/httpsnoop

go 1.25.0
