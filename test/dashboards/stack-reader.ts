/*
 * Reads the files of the stack for the tests, checked for the shape that the tests rely on:
 * compose, Prometheus, Grafana's provisioning, the Dockerfile.
 */
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { z } from 'zod'

const compose = z.object({
  services: z.record(
    z.string(),
    z.object({
      image: z.string().optional(),
      build: z.string().optional(),
      environment: z.record(z.string(), z.string()).default({}),
      volumes: z.array(z.string()).default([]),
      ports: z.array(z.string()).default([]),
      profiles: z.array(z.string()).default([]),
      healthcheck: z.object({ test: z.array(z.string()).optional() }),
    }),
  ),
  volumes: z.record(z.string(), z.null()),
})

const prometheus = z.object({
  global: z.object({ scrape_interval: z.string() }),
  scrape_configs: z.array(
    z.object({
      job_name: z.string(),
      static_configs: z.array(z.object({ targets: z.array(z.string()) })),
    }),
  ),
})

const dataSources = z.object({
  datasources: z.tuple([
    z.object({
      uid: z.string(),
      type: z.string(),
      url: z.string(),
      jsonData: z.object({ timeInterval: z.string() }),
    }),
  ]),
})

const providers = z.object({
  providers: z.tuple([
    z.object({ allowUiUpdates: z.boolean().optional(), options: z.object({ path: z.string() }) }),
  ]),
})

const provisioning = 'dashboards/provisioning'

export const stack = {
  compose: compose.parse(yaml('docker-compose.yml')),
  prometheus: prometheus.parse(yaml('prometheus/prometheus.yml')),
  dataSource: dataSources.parse(yaml(`${provisioning}/datasources/prometheus.yml`)).datasources[0],
  provider: providers.parse(yaml(`${provisioning}/dashboards/tallygate.yml`)).providers[0],
  dockerfile: text('Dockerfile'),
} as const

export function text(path: string): string {
  return readFileSync(path, 'utf8')
}

function yaml(path: string): unknown {
  return parse(text(path))
}
