/*
 * A real Chromium, headless, that asks nothing of the outside.
 */
import { chromium, type Browser } from 'playwright-core'

export function launchBrowser(program: string): Promise<Browser> {
  return chromium.launch({
    executablePath: program,
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })
}
