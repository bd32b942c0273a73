module github.com/holdshort/holdshort/sdk/go

go 1.22
