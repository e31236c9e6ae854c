/*
 * The committed boards are the generated ones. Whoever edits a JSON file by hand, or a source
 * without generating, is told here and by `npm run dashboards:check`.
 */
import { describe, expect, it } from 'vitest'
import { boardFiles, drifting } from '../../dashboards/boards.js'
import { boardNames, boardText } from './board-reader.js'

describe('generated boards', () => {
  it('the committed boards are what the sources describe', () => {
    expect(drifting(boardText)).toEqual([])
  })

  it('no board is committed that the sources do not describe', () => {
    expect(boardNames()).toEqual([...boardFiles().keys()].toSorted())
  })

  it('a board that was edited by hand is named', () => {
    expect(drifting((name) => boardText(name).replace('"refresh"', '"Refresh"'))).toEqual(
      boardNames(),
    )
  })

  it('a board that is missing is named', () => {
    expect(drifting(() => null)).toEqual(boardNames())
  })

  it('two runs give the same text', () => {
    expect([...boardFiles()]).toEqual([...boardFiles()])
  })
})
