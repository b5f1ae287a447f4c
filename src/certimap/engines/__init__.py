"""Engines: masters, trees and the ledger of proved bounds."""
