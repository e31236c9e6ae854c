/*
 * The path of a request as routes are looked up by it, where no app on a socket shows it: Express 4, which is
 * not installed here, is known by its `_router`.
 */
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { expect, it } from 'vitest'
import { RequestFacts } from '../../src/express/request-facts.js'

function requestOf(url: string, more: object = {}) {
  const request = new IncomingMessage(new Socket())
  return Object.assign(request, { url, originalUrl: url, method: 'GET' }, more)
}

const pathOf = (url: string, more?: object) =>
  new RequestFacts().of(requestOf(url, more), '', undefined, true).path

it('slashes in a row are one in an app of Express 4, which passes over one after a mount', () => {
  const app = { _router: { caseSensitive: false, strict: false } }
  expect(pathOf('/api//login', { app })).toBe('/api/login')
  expect(pathOf('//api///login//?a=//', { app })).toBe('/api/login/')
  expect(pathOf('/api//login', { app: { router: {} } })).toBe('/api//login')
})

it('the settings of an app of Express 4 are those of its router', () => {
  const app = { _router: { caseSensitive: true, strict: true } }
  const facts = new RequestFacts().of(requestOf('/', { app }), '', undefined, true)
  expect(facts).toMatchObject({ isPathCaseSensitive: true, isPathStrict: true })
})

it('a target that cannot be parsed has no path', () => {
  expect(pathOf('http://[::1/')).toBeUndefined()
  expect(pathOf('x://')).toBeUndefined()
})

it('where no rule asks, the path is not looked for', () => {
  const facts = new RequestFacts().of(requestOf('/a'), '1.2.3.4', 'me', false)
  expect(facts).toMatchObject({ ip: '1.2.3.4', session: 'me', method: 'GET', path: undefined })
})
