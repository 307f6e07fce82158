module k8s.io/api

go 1.25.0

require k8s.io/apimachinery v0.35.4

replace k8s.io/apimachinery => ../apimachinery
