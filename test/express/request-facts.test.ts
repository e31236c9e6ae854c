/*
 * What rules ask of a request, where no app on a socket shows it; the rest is in match.test.ts.
 */
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { expect, it } from 'vitest'
import { RequestFacts } from '../../src/express/request-facts.js'

function requestOf(url: string) {
  return Object.assign(new IncomingMessage(new Socket()), { url, method: 'GET' })
}

const pathOf = (url: string) => new RequestFacts().of(requestOf(url), '', undefined, true).path

it('a target that cannot be parsed has no path', () => {
  expect(pathOf('http://[::1/')).toBeUndefined()
  expect(pathOf('x://')).toBeUndefined()
})

it('where no rule asks, the path is not looked for', () => {
  const facts = new RequestFacts().of(requestOf('/a'), '1.2.3.4', 'me', false)
  expect(facts).toMatchObject({ ip: '1.2.3.4', session: 'me', method: 'GET', path: undefined })
})
