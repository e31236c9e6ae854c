/*
 * The files of the stack fit together: what Prometheus scrapes, what compose starts, what Grafana
 * is provisioned with, what the image holds. Read as data, so they are checked where no engine
 * runs them too.
 */
import { existsSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { config } from '../../dashboards/config.js'
import { folder } from './board-reader.js'
import { stack, text } from './stack-reader.js'

const { compose, prometheus, dataSource, provider, dockerfile } = stack
const services = Object.entries(compose.services)
const volumes = services.flatMap(([, service]) => service.volumes)
const app = compose.services['app']
const grafana = compose.services['grafana']

const targets = prometheus.scrape_configs.flatMap(({ job_name: job, static_configs: hosts }) =>
  hosts.flatMap((host) => host.targets.map((target) => ({ job, target }))),
)

describe('Prometheus and Grafana', () => {
  it('GRF-08: scrapes the app by its compose service, and only itself on localhost', () => {
    expect(targets).toContainEqual({ job: 'tallygate', target: 'app:3000' })
    expect(targets.filter((target) => !isReachable(target))).toEqual([])
  })

  it('GRF-08: the app listens on all addresses of its container', () => {
    expect(app?.environment['HOST']).toBe('0.0.0.0')
    expect(dockerfile).toMatch(/^ENV HOST=0\.0\.0\.0$/m)
  })

  it('GRF-04: Grafana, Prometheus and the boards agree on the scrape interval', () => {
    expect(prometheus.global.scrape_interval).toBe(config.scrapeInterval)
    expect(dataSource.jsonData.timeInterval).toBe(config.scrapeInterval)
  })

  it('GRF-02: the data source has a uid of its own and reaches Prometheus by its service', () => {
    expect(dataSource).toMatchObject({ uid: 'prometheus', type: 'prometheus' })
    expect(Object.keys(compose.services)).toContain(new URL(dataSource.url).hostname)
  })

  it('GRF-09: the provider says that boards cannot be saved, the guide how a change lasts', () => {
    expect(provider.allowUiUpdates).toBe(false)
    expect(text('docs/dashboards.md')).toMatch(/survives a restart[^]*npm run dashboards/)
  })
})

describe('compose', () => {
  it('every published port is on loopback, and no two are the same', () => {
    expect(services.flatMap(([, { ports }]) => ports).toSorted()).toEqual([
      '127.0.0.1:3000:3000',
      '127.0.0.1:3001:3000',
      '127.0.0.1:9090:9090',
    ])
  })

  it('every image is pinned to a full version', () => {
    const pulled = services.flatMap(([, { image }]) => image ?? [])
    const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, image = '']) => image)
    expect([...pulled, ...bases]).toHaveLength(4)
    expect([...pulled, ...bases].filter((image) => !/:v?\d+\.\d+\.\d+/.test(image))).toEqual([])
  })

  it('every service keeps its data in a declared named volume of its own', () => {
    const named = volumes
      .filter((mount) => !mount.startsWith('.'))
      .map((mount) => mount.split(':')[0] ?? '')
    expect(named.toSorted()).toEqual(Object.keys(compose.volumes).toSorted())
    expect(named).toHaveLength(services.filter(([name]) => name !== 'traffic').length)
  })

  it('what is mounted from the repository exists and is read-only', () => {
    const mounts = volumes.filter((mount) => mount.startsWith('.'))
    expect(mounts.length).toBeGreaterThan(0)
    expect(mounts.filter((mount) => !mount.endsWith(':ro'))).toEqual([])
    expect(mounts.filter((mount) => !existsSync(mount.split(':')[0] ?? ''))).toEqual([])
  })

  it('every service says whether it is well', () => {
    expect(dockerfile).toMatch(/^HEALTHCHECK [^]*\/healthz/m)
    const silent = services.filter(
      ([, { build, healthcheck }]) => build === undefined && healthcheck.test?.[0] !== 'CMD',
    )
    expect(silent.map(([name]) => name)).toEqual([])
  })

  it('Grafana opens on a board that is mounted where the provider looks for it', () => {
    const home = grafana?.environment['GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH'] ?? ''
    expect(grafana?.volumes).toContain(`./${folder}:${provider.options.path}:ro`)
    expect(home).toBe(`${provider.options.path}/${basename(home)}`)
    expect(existsSync(join(folder, basename(home)))).toBe(true)
  })

  it('the source of traffic starts only where it is asked for', () => {
    const optional = services.filter(([, { profiles }]) => profiles.length > 0)
    expect(optional.map(([name, { profiles }]) => [name, profiles])).toEqual([
      ['traffic', ['demo']],
    ])
  })

  it('anyone may look at Grafana and nobody may change it', () => {
    expect(grafana?.environment).toMatchObject({
      GF_AUTH_ANONYMOUS_ENABLED: 'true',
      GF_AUTH_ANONYMOUS_ORG_ROLE: 'Viewer',
    })
  })
})

describe('image', () => {
  it('is for production unless told otherwise, and compose tells it', () => {
    expect(dockerfile).toMatch(/^ENV NODE_ENV=production$/m)
    expect(app?.environment['NODE_ENV']).toBe('development')
  })

  it('runs as a user without rights, who owns the data folder', () => {
    const runtime = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '))
    expect(runtime).toMatch(/chown node:node data[^]*^USER node$[^]*^CMD /m)
    expect(app?.volumes).toContain('app-data:/app/data')
  })

  it('starts the app and not npm, which would keep the signal to stop', () => {
    expect(dockerfile).toContain('CMD ["node", "dist/cli/main.js", "serve"]')
  })

  it('what the Dockerfile copies is let through by .dockerignore, and nothing else', () => {
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(
      ([, sources = '']) => sources.split(' '),
    )
    const allowed = text('.dockerignore')
      .split('\n')
      .filter((line) => line.startsWith('!'))
    expect(allowed.map((line) => line.slice(1)).toSorted()).toEqual(copied.toSorted())
  })
})

/** From inside Prometheus's container, where localhost is that container. */
function isReachable({ job, target }: { job: string; target: string }): boolean {
  if (job === 'prometheus') return target === 'localhost:9090'
  return Object.hasOwn(compose.services, target.split(':')[0] ?? '')
}
