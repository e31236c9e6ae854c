/*
 * The page at `/` in a real browser: its buttons reach the limits and its form begins a session.
 */
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Browser, Page } from 'playwright-core'
import { launchBrowser } from '../support/browser.js'
import { startApp, type StartedApp } from '../support/processes.js'
import { describeWith, findTool } from '../support/tools.js'

describeWith(['chromium'], 'the home page in a browser', () => {
  let app: StartedApp
  let browser: Browser
  let page: Page
  const complaints: string[] = []

  beforeAll(async () => {
    app = await startApp()
    browser = await launchBrowser(findTool('chromium') ?? '')
    page = await browser.newPage()
    page.on('console', (message) => {
      // What is declined, refused or not there is logged as an error of loading; that one is wanted.
      if (message.type() === 'error' && !/status of (403|429|502)/.test(message.text())) {
        complaints.push(message.text())
      }
    })
    page.on('pageerror', (error) => complaints.push(error.message))
    await page.goto(app.url)
  })
  afterAll(async () => {
    await browser.close()
    await app.end()
  })

  const answer = () => page.locator('#answer').textContent()

  it('shows the limits in force', async () => {
    const rows = await page.locator('tbody tr').allTextContents()
    expect(rows).toHaveLength(4)
    expect(rows[1]).toContain('400 in 1m')
  })

  it('sends one request and shows where the client stands', async () => {
    await page.getByRole('button', { name: '1 request', exact: true }).click()
    await expect.poll(answer).toContain('GET /api/ping  200')
    expect(await answer()).toContain('RateLimit: "ip";r=')
  })

  it('begins a session, and the session limit counts it from then on', async () => {
    await page.getByRole('button', { name: 'Start a session' }).click()
    await expect.poll(answer).toContain('201')
    await page.getByRole('button', { name: '1 request', exact: true }).click()
    await expect.poll(answer).toContain('"session";r=199')
    await page.getByRole('button', { name: 'End it' }).click()
    await expect.poll(answer).toContain('204')
  })

  it('goes past the limit of a function and shows what was declined', async () => {
    await page.getByRole('button', { name: '80 calls of parse-url' }).click()
    const declined = () => page.locator('#declined').textContent()
    await expect.poll(declined, { timeout: 10_000 }).toBe('20')
    expect(await answer()).toContain('parse-url allows 60 requests in 1m')
  })

  it('asks for the page whose address is filled in', async () => {
    await page.getByLabel('Address of a page').fill('http://127.0.0.1/?a=1&b=2')
    await page.getByRole('button', { name: 'Parse it' }).click()
    await expect
      .poll(answer)
      .toContain('GET /api/parse?url=http%3A%2F%2F127.0.0.1%2F%3Fa%3D1%26b%3D2  403')
    expect(await answer()).toContain('"title":"Forbidden"')
  })

  it('keeps to its content security policy and throws nothing', () => {
    expect(complaints).toEqual([])
  })
})
