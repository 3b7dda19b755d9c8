import Foundation
import Supabase

internal enum ShopSchema {
  internal enum State: String, Codable, Hashable, Sendable {
    case open = "open"
    case waitingForAnAnswer = "waiting for an answer"
    case sayNo = "say \"no\""
    case closedWithoutAnyFurtherExplanation = "closed without any further explanation"
  }
  internal struct EmptySelect: Codable, Hashable, Sendable {
  }
  internal struct EmptyInsert: Codable, Hashable, Sendable {
  }
  internal struct EmptyUpdate: Codable, Hashable, Sendable {
  }
  internal struct ParcelSelect: Codable, Hashable, Sendable, Identifiable {
    internal let aStateWhoseColumnHasARatherLongName: State?
    internal let id: Int32
    internal let senderId: Int64
    internal let size: Decimal?
    internal enum CodingKeys: String, CodingKey {
      case aStateWhoseColumnHasARatherLongName = "a_state_whose_column_has_a_rather_long_name"
      case id = "id"
      case senderId = "sender_id"
      case size = "size"
    }
  }
  internal struct ParcelInsert: Codable, Hashable, Sendable, Identifiable {
    internal let aStateWhoseColumnHasARatherLongName: State?
    internal let id: Int32?
    internal let senderId: Int64
    internal let size: Decimal?
    internal enum CodingKeys: String, CodingKey {
      case aStateWhoseColumnHasARatherLongName = "a_state_whose_column_has_a_rather_long_name"
      case id = "id"
      case senderId = "sender_id"
      case size = "size"
    }
  }
  internal struct ParcelUpdate: Codable, Hashable, Sendable, Identifiable {
    internal let aStateWhoseColumnHasARatherLongName: State?
    internal let id: Int32?
    internal let senderId: Int64?
    internal let size: Decimal?
    internal enum CodingKeys: String, CodingKey {
      case aStateWhoseColumnHasARatherLongName = "a_state_whose_column_has_a_rather_long_name"
      case id = "id"
      case senderId = "sender_id"
      case size = "size"
    }
  }
  internal struct PassportSelect: Codable, Hashable, Sendable {
    internal let issued: String
    internal let number: String
    internal let personId: Int64
    internal enum CodingKeys: String, CodingKey {
      case issued = "issued"
      case number = "number"
      case personId = "person_id"
    }
  }
  internal struct PassportInsert: Codable, Hashable, Sendable {
    internal let issued: String?
    internal let number: String
    internal let personId: Int64
    internal enum CodingKeys: String, CodingKey {
      case issued = "issued"
      case number = "number"
      case personId = "person_id"
    }
  }
  internal struct PassportUpdate: Codable, Hashable, Sendable {
    internal let issued: String?
    internal let number: String?
    internal let personId: Int64?
    internal enum CodingKeys: String, CodingKey {
      case issued = "issued"
      case number = "number"
      case personId = "person_id"
    }
  }
  internal struct PersonSelect: Codable, Hashable, Sendable, Identifiable {
    internal let born: String?
    internal let email: String
    internal let home: PlaceSelect?
    internal let id: Int64
    internal let notes: AnyJSON
    internal let state: State
    internal let tags: [String]?
    internal let userId: UUID?
    internal enum CodingKeys: String, CodingKey {
      case born = "born"
      case email = "email"
      case home = "home"
      case id = "id"
      case notes = "notes"
      case state = "state"
      case tags = "tags"
      case userId = "user-id"
    }
  }
  internal struct PersonInsert: Codable, Hashable, Sendable, Identifiable {
    internal let born: String?
    internal let email: String
    internal let home: PlaceSelect?
    internal let id: Int64?
    internal let notes: AnyJSON?
    internal let state: State?
    internal let tags: [String]?
    internal let userId: UUID?
    internal enum CodingKeys: String, CodingKey {
      case born = "born"
      case email = "email"
      case home = "home"
      case id = "id"
      case notes = "notes"
      case state = "state"
      case tags = "tags"
      case userId = "user-id"
    }
  }
  internal struct PersonUpdate: Codable, Hashable, Sendable, Identifiable {
    internal let born: String?
    internal let email: String?
    internal let home: PlaceSelect?
    internal let id: Int64?
    internal let notes: AnyJSON?
    internal let state: State?
    internal let tags: [String]?
    internal let userId: UUID?
    internal enum CodingKeys: String, CodingKey {
      case born = "born"
      case email = "email"
      case home = "home"
      case id = "id"
      case notes = "notes"
      case state = "state"
      case tags = "tags"
      case userId = "user-id"
    }
  }
  internal struct AdultSelect: Codable, Hashable, Sendable {
    internal let born: String?
    internal let email: String?
    internal let id: Int64?
    internal enum CodingKeys: String, CodingKey {
      case born = "born"
      case email = "email"
      case id = "id"
    }
  }
  internal struct ParcelCountSelect: Codable, Hashable, Sendable {
    internal let parcels: Int64?
    internal let senderId: Int64?
    internal enum CodingKeys: String, CodingKey {
      case parcels = "parcels"
      case senderId = "sender_id"
    }
  }
  internal struct Place: Codable, Hashable, Sendable {
    internal let City: String
    internal let PostCode: AnyJSON
    internal let Kind: AnyJSON
    internal enum CodingKeys: String, CodingKey {
      case City = "city"
      case PostCode = "post-code"
      case Kind = "kind"
    }
  }
}
