/*
 * Whose request is it: the session that express-session found, as long as the request's own cookie names it.
 */
import session from 'express-session'
import { describe, expect, it } from 'vitest'
import type { Express } from 'express'
import type { GateParts } from '../../src/gate/gate.js'
import { guarded, statuses } from '../support/server.js'

declare module 'express-session' {
  interface SessionData {
    user: string
  }
}

function withSessions(app: Express, gate: GateParts): void {
  app.use(session({ secret: 'of no account', resave: false, saveUninitialized: false }))
  app.get('/login', (request, response) => {
    request.session.user = 'somebody'
    response.send('welcome')
  })
  app.use(gate.middleware)
  app.get('/', (request, response) => void response.send(request.session.user ?? 'nobody'))
}

describe('an established session', () => {
  const escaped = (text: string) => `%${text.charCodeAt(0).toString(16)}${text.slice(1)}`
  const spellings: Record<string, (id: string, signature: string) => string> = {
    'as it was given': (id, signature) => `s%3A${id}.${signature}`,
    unescaped: (id, signature) => `s:${id}.${signature}`,
    'in quotes': (id, signature) => `"s%3A${id}.${signature}"`,
    'with a letter of its id escaped': (id, signature) => `s%3A${escaped(id)}.${signature}`,
    'with its full stop escaped': (id, signature) => `s%3A${id}%2e${signature}`,
  }

  for (const [spelling, spell] of Object.entries(spellings)) {
    it(`is counted, its cookie ${spelling}`, async () => {
      const rules = [
        { name: 'session', key: 'session', limit: 2, window: '1m', absent: 'skip' } as const,
      ]
      const { ask } = await guarded({ rules }, withSessions)
      const given = (await ask('/login')).headers.get('set-cookie') ?? ''
      const [, id, signature] = /=s%3A([^.]+)\.([^;]+)/.exec(given) ?? []
      const cookie = `connect.sid=${spell(id ?? '', signature ?? '')}`
      expect((await ask('/', { headers: { cookie } })).text).toBe('somebody')
      const seen = await statuses(2, () => ask('/', { headers: { cookie } }))
      expect(seen).toEqual([200, 429])
    })
  }
})
