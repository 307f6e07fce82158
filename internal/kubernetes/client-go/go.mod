module k8s.io/client-go

go 1.25.0

require (
	github.com/stretchr/testify v1.11.1
	go.yaml.in/yaml/v3 v3.0.5
	k8s.io/api v0.35.4
	k8s.io/apimachinery v0.35.4
)

require (
	github.com/davecgh/go-spew v1.1.2-0.20180830191138-d8f796af33cc // indirect
	github.com/pmezard/go-difflib v1.0.1-0.20181226105442-5d4384ee4fb2 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace k8s.io/api => ../api

replace k8s.io/apimachinery => ../apimachinery
